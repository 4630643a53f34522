"""`openai:` against a local server that answers each call after 50 ms, beside the ideal and beside the bare SDK.

Run: python tests/perf/openai_speed.py [calls] [at once]
The server is a process of its own. The ideal is calls / at once × 50 ms; the bare SDK is its own client on its own
default transport and on aiohttp, with the same calls and the same number at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import openai

from memharness.media import MediaStore
from memharness.reader import Message, Request
from memharness.readers.openai import OpenAIConfig, OpenAIReader
from memharness.types import Text

DELAY = 0.05
REPLY = json.dumps(
    {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Paris"}}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }
).encode()


async def serve() -> None:
    """Answer every request on a free port after `DELAY`, and print the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").lower().split("\r\n")
                length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length")), 0)
                await reader.readexactly(length)
                if lines[0].startswith("post"):
                    await asyncio.sleep(DELAY)
                size = f"content-type: application/json\r\ncontent-length: {len(REPLY)}".encode()
                writer.write(b"HTTP/1.1 200 OK\r\n" + size + b"\r\n\r\n" + REPLY)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def timed(call: Callable[[int], Awaitable[Any]], calls: int, at_once: int) -> float:
    """Return the seconds that the calls take, at most `at_once` in flight."""
    places = asyncio.Semaphore(at_once)

    async def one(n: int) -> None:
        async with places:
            await call(n)

    begun = time.perf_counter()
    await asyncio.gather(*(one(n) for n in range(calls)))
    return time.perf_counter() - begun


async def ours(url: str, calls: int, at_once: int) -> float:
    """Return the seconds of the reader, its slow start included."""
    with tempfile.TemporaryDirectory() as temporary:
        config = OpenAIConfig(base_url=url, max_inflight=at_once)
        reader = OpenAIReader("tiny", config, MediaStore(Path(temporary) / "files.sqlite"))
        await reader.start()
        seconds = await timed(lambda n: reader.generate(_request(n)), calls, at_once)
        await reader.close()
    return seconds


def _request(n: int) -> Request:
    return Request((Message("system", (Text("Be brief."),)), Message("user", (Text(f"Question {n}?"),))))


async def bare(url: str, calls: int, at_once: int, http_client: Any) -> float:
    """Return the seconds of the SDK alone."""
    client = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, http_client=http_client)

    async def call(n: int) -> None:
        words = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Question {n}?"}]
        await client.chat.completions.create(model="tiny", messages=words)  # type: ignore[arg-type]

    seconds = await timed(call, calls, at_once)
    await client.close()
    return seconds


def main() -> int:
    """Measure and print."""
    if "--serve" in sys.argv:
        asyncio.run(serve())
        return 0
    calls, at_once = (int(word) for word in (*sys.argv[1:3], *("1000", "64")[len(sys.argv) - 1 :]))
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
    ideal = calls / at_once * DELAY
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, openai {openai.__version__}"
    )
    print(f"{calls:,} calls, {at_once} at once, {DELAY * 1000:.0f} ms each: ideal {ideal:.2f} s")
    try:
        for name, run in (
            ("openai: reader", lambda: ours(url, calls, at_once)),
            ("SDK on aiohttp", lambda: bare(url, calls, at_once, openai.DefaultAioHttpClient())),
            ("SDK as it comes", lambda: bare(url, calls, at_once, None)),
        ):
            seconds = asyncio.run(run())
            print(f"{name:16} {seconds:6.2f} s  {seconds / ideal:5.2f} × ideal")
    finally:
        server.terminate()
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
