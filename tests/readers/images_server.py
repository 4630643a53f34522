"""A real local server of the OpenAI images shape. It draws what it is asked with `pil`, or answers from a script."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memharness.imaging import ImageError, ImageRequest, open_images


@dataclass
class Asked:
    """A call as it came in: path, plain fields, pictures in order, and the key."""

    path: str
    fields: dict[str, Any]
    images: tuple[bytes, ...]
    key: str


Reply = tuple[int, Any, dict[str, str]]


def drawn(asked: Asked) -> Reply:
    """What `pil` draws, as many as asked."""
    size = asked.fields.get("size")
    seed = asked.fields.get("seed")
    request = ImageRequest(
        asked.fields["prompt"],
        asked.images,
        tuple(map(int, size.split("x"))) if size else None,  # type: ignore[arg-type]
        None if seed is None else int(seed),
        int(asked.fields.get("n", 1)),
    )
    try:
        made = asyncio.run(open_images("pil").make(request))
    except ImageError as error:
        return 400, {"error": {"message": str(error), "code": "invalid_request"}}, {}
    return 200, {"created": 1, "data": [{"b64_json": base64.b64encode(one.data).decode()} for one in made]}, {}


@dataclass
class Server:
    """The server: where it is, what it was asked, and how it answers (its last answer for ever)."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: list[Callable[[Asked], Reply]] = field(default_factory=lambda: [drawn])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Reply:
        """The next answer."""
        with self.lock:
            self.asked.append(asked)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(asked)


def said(status: int, body: Any, **headers: str) -> Callable[[Asked], Reply]:
    """A scripted answer."""
    return lambda asked: (status, body, headers)


@contextmanager
def images_server() -> Iterator[Server]:
    """A server on a free port, until the end of the block."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send((200, {"object": "list", "data": []}, {}))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            kind = self.headers["content-type"]
            written = kind.startswith("application/json")
            fields, images = (json.loads(body), ()) if written else _parts(kind, body)
            self._send(state.answer(Asked(self.path, fields, images, self.headers.get("authorization", ""))))

        def _send(self, reply: Reply) -> None:
            status, body, headers = reply
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _parts(kind: str, body: bytes) -> tuple[dict[str, Any], tuple[bytes, ...]]:
    """Fields and pictures of a multipart form."""
    message: Any = BytesParser(policy=HTTP).parsebytes(f"content-type: {kind}\r\n\r\n".encode() + body)
    fields: dict[str, Any] = {}
    images: list[bytes] = []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        if name == "image":
            images.append(part.get_payload(decode=True))
        else:
            fields[name] = part.get_payload(decode=True).decode()
    return fields, tuple(images)
