"""A real local HTTP server that speaks the OpenAI API, scripted reply by reply."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memharness.media import MediaStore

USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


@dataclass
class Answer:
    """One scripted reply: status, body (a string goes out as it is), headers, and seconds before it."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


def chat(content: str | None = "Paris", finish: str = "stop", usage: Any = USAGE, **message: Any) -> dict[str, Any]:
    """A chat completion as servers write it."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "tiny-2026-01-01", "choices": [choice]}
    return body if usage is None else {**body, "usage": usage}


@dataclass
class Api:
    """The server: what it was asked, and what it answers next (its last answer for ever)."""

    url: str = ""
    answers: list[Answer | Callable[[dict[str, Any]], Answer]] = field(default_factory=list)
    models: Answer = field(default_factory=lambda: Answer({"object": "list", "data": []}))
    asked: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, body: dict[str, Any], key: str) -> Answer:
        with self.lock:
            self.asked.append(body)
            self.times.append(time.monotonic())
            self.keys.append(key)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(body) if callable(answer) else answer


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    state = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(state.models)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self._send(state.next(body, self.headers.get("authorization", "")))

        def _send(self, answer: Answer) -> None:
            time.sleep(answer.delay)
            content = answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode()
            try:
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                pass  # the client gave up waiting, which is what some tests are about

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def media(tmp_path: Path) -> MediaStore:
    return MediaStore(tmp_path / "files.sqlite")
