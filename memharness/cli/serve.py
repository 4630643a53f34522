"""`memharness serve`: a model behind the OpenAI API, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from memharness.cli.output import option, say
from memharness.types import UserError


def serve(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="As after `vllm:`: a folder, OWNER/NAME, or smollm2.", show_default=False),
    ],
    extra: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT]...", help="More of the server's own arguments.")
    ] = None,
    port: Annotated[int, option("--port", metavar="N", default="8000", help="Where it listens; 0 takes any.")] = 8000,
    host: Annotated[str, option("--host", metavar="H", default="127.0.0.1", help="Where it listens.")] = "127.0.0.1",
    name: Annotated[
        str | None, option("--name", metavar="NAME", default="MODEL's last word", help="What clients call the model.")
    ] = None,
    dtype: Annotated[str | None, option("--dtype", metavar="D", help="As -R dtype=D.")] = None,
    max_model_len: Annotated[int | None, option("--max-model-len", metavar="N", help="As -R max_model_len=N.")] = None,
    tensor_parallel_size: Annotated[
        int | None, option("--tensor-parallel-size", metavar="N", help="As -R tensor_parallel_size=N.")
    ] = None,
    options: Annotated[
        list[str] | None, option("-R", metavar="K=V", help="An option of the reader `vllm`; may be repeated.")
    ] = None,
    timeout: Annotated[
        float, option("--timeout", metavar="SECONDS", min=1.0, default="900", help="How long it has to become ready.")
    ] = 900.0,
) -> int:
    """Serve a model with vLLM behind the OpenAI API.

    It takes the options of `vllm:MODEL` and gives the replies of it. A key, if clients are to need one, is read from
    the environment (VLLM_API_KEY) only. Ctrl-C or SIGTERM stops the server and everything it started.
    """
    from memharness.config import parse_pairs
    from memharness.media import MediaStore, home
    from memharness.run.serving import ModelServer, Servable, free_port
    from memharness.run.setup import make_reader

    short = {"dtype": dtype, "max_model_len": max_model_len, "tensor_parallel_size": tensor_parallel_size}
    given: dict[str, Any] = {**parse_pairs(options or [], "-R"), **{k: v for k, v in short.items() if v is not None}}
    spec = model if model.startswith("vllm:") else f"vllm:{model}"
    reader = make_reader(spec, given, MediaStore())
    if not isinstance(reader, Servable):
        raise UserError(f"serve {spec}: this reader cannot be served")
    port = free_port(host, port)
    name = name or Path(reader.card.model).name
    command, environment = reader.server(name, host, port, extra or [])
    server = ModelServer(command, environment, host, port, home() / "serve" / f"{port}.log", timeout)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        asyncio.run(reader.prepare())
        say(f"starting {name} at {server.address} (its log: {server.log})")
        began = time.monotonic()
        with server:
            typer.echo(f"ready after {time.monotonic() - began:.0f} s: {server.address}/v1 serves {name}")
            typer.echo(_how_to_ask(name, server.address, "image" in reader.card.capabilities))
            sys.stdout.flush()
            code = server.wait()
            say(f"error: the server ended with code {code}; {server.last_words()}")
            return 1
    except KeyboardInterrupt:
        say("stopped")
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _how_to_ask(name: str, address: str, sees: bool) -> str:
    """The words that ask this server; a key stays in its variable."""
    key = "OPENAI_API_KEY=$VLLM_API_KEY " if os.environ.get("VLLM_API_KEY") else ""
    words = f"memharness run --reader openai:{shlex.quote(name)}{'' if sees else ' -R images=false'} …"
    return f"{key}OPENAI_BASE_URL={address}/v1 {words}"
