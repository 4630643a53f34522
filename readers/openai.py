"""`openai:MODEL`: any server that speaks the OpenAI API, as a reader (chat completions) and as an embedder."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import io
import ipaddress
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit

from memharness.config import Config, option
from memharness.media import MediaStore
from memharness.reader import Counter, Embedder, Message, Reader, ReaderCard, Reply, Request, count
from memharness.readers.counters import Bytes4, tokenizer_counter
from memharness.types import Image, OverWindow, Part, ReaderError, Text, Usage, UserError, Video

if TYPE_CHECKING:
    import httpx2  # noqa: F401
    import numpy as np
    import openai
    from numpy.typing import NDArray
