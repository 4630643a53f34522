"""A run against a server that fails in every way servers fail: nothing lost, nothing asked too often, no key shown."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import Said, records, summary

KEY = "sk-live-DoNotShowThis-0123456789"
ATTEMPTS = 3
N = 36
PASSING = ("429", "429 now", "500", "503", "hang up", "hang up midway")
LASTING = (
    *PASSING,
    "slow",
    "malformed",
    "html",
    "wrong usage",
    "negative usage",
    "no usage",
    "no choices",
    "400",
    "401",
)
GOOD = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "A lighthouse"}}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103},
}


@dataclass
class Faulty:
    """The server: which fault meets which try of which prompt, and what it was asked."""

    url: str = ""
    plan: Callable[[int, int], str | None] = lambda prompt, attempt: None
    prompts: dict[str, int] = field(default_factory=dict)
    asked: Counter[int] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, prompt: str) -> str | None:
        with self.lock:
            number = self.prompts.setdefault(prompt, len(self.prompts))
            self.asked[number] += 1
            return self.plan(number, self.asked[number])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faulty]:
    state = Faulty()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send(200, {"object": "list", "data": []})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            key = self.headers["authorization"]
            fault = state.fault(json.dumps(body["messages"]))
            said = {"error": {"message": f"{fault} for the caller with {key}", "param": key}}  # servers do echo keys
            match fault:
                case None:
                    self.send(200, GOOD)
                case "429":
                    self.send(429, said, {"retry-after": "0.01"})
                case "429 now":
                    self.send(429, said, {"retry-after-ms": "0"})
                case "hang up":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                case "hang up midway":
                    self.send(200, GOOD, cut=40)
                case "slow":
                    self.send(200, GOOD, pause=4)
                case "malformed":
                    self.send(200, f'{{"choices": [{key}')
                case "html":
                    self.send(200, f"<html>{key}</html>", {"content-type": "text/html"})
                case "wrong usage":
                    self.send(200, {**GOOD, "usage": {"prompt_tokens": "many", "completion_tokens": 3, "who": key}})
                case "negative usage":
                    self.send(200, {**GOOD, "usage": {"prompt_tokens": -1, "completion_tokens": 3}})
                case "no usage":
                    self.send(200, {name: value for name, value in GOOD.items() if name != "usage"})
                case "no choices":
                    self.send(200, {**GOOD, "choices": [], "who": key})
                case status:
                    self.send(int(status), said)

        def send(
            self,
            status: int,
            body: Any,
            headers: dict[str, str] | None = None,
            cut: int | None = None,
            pause: float = 0,
        ) -> None:
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            try:
                self.send_response(status)
                for name, value in {"content-type": "application/json", **(headers or {})}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[:20])
                self.wfile.flush()
                time.sleep(pause)
                self.wfile.write(content[20:cut])
            except OSError:
                pass  # the client went away, as it should after its time-out
            if cut is not None:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # connections that were cut on purpose

    running = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    state.url = f"http://127.0.0.1:{running.server_port}/v1"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    yield state
    running.shutdown()
    running.server_close()


def words(server: Faulty, out: Path) -> list[str]:
    return [
        "run", "--method", "bm25", "--bench", "locomo", "--reader", "openai:tiny", "-R", f"base_url={server.url}",
        "-R", f"attempts={ATTEMPTS}", "-R", "first_wait=0.01", "-R", "timeout=2",
        "--view", "captions", "--out", str(out), "--json",
    ]  # fmt: skip


def everything_written(*folders: Path) -> bytes:
    return b"\n".join(path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file())


def test_what_passes_is_waited_out(cli: Callable[..., Said], server: Faulty, home: Path, tmp_path: Path) -> None:

    def plan(prompt: int, attempt: int) -> str | None:
        if attempt == ATTEMPTS:
            return None
        return "slow" if prompt == attempt == 1 else PASSING[(prompt + attempt) % len(PASSING)]

    server.plan = plan
    said = cli(*words(server, tmp_path / "out"), "--limit", "14")
    assert said.code == 0, said.err
    found = records(summary(said))
    assert [record["outcome"] for record in found] == ["ok"] * 14
    assert len({record["question"] for record in found}) == 14
    assert {record["answer"] for record in found} == {"A lighthouse"}
    assert set(server.asked.values()) == {ATTEMPTS}
    assert "stamina" not in said.err
    assert KEY.encode() not in everything_written(tmp_path, home) + said.out.encode() + said.err.encode()


def test_what_lasts_is_an_outcome_and_is_asked_again_later(
    cli: Callable[..., Said], server: Faulty, home: Path, tmp_path: Path
) -> None:
    server.plan = lambda prompt, attempt: LASTING[prompt % len(LASTING)] if prompt % 2 else None
    said = cli(*words(server, tmp_path / "out"))
    assert said.code == 1  # it ran, and too many questions failed
    found = records(summary(said))
    outcomes = Counter(record["outcome"] for record in found)
    assert outcomes == {"ok": N // 2, "reader_error": N // 2}
    failed = [record for record in found if record["outcome"] == "reader_error"]
    assert all(record.get("answer") is None and record["error"]["message"] for record in failed)
    for prompt, times in server.asked.items():
        fault = LASTING[prompt % len(LASTING)] if prompt % 2 else None
        assert times == (ATTEMPTS if fault in (*PASSING, "slow") else 1), fault
    shown = everything_written(tmp_path, home) + said.out.encode() + said.err.encode()
    assert KEY.encode() not in shown

    before = sum(server.asked.values())
    server.plan = lambda prompt, attempt: None
    again = cli(*words(server, tmp_path / "out"))
    assert again.code == 0
    assert [record["outcome"] for record in records(summary(again))] == ["ok"] * N
    assert sum(server.asked.values()) - before == N // 2  # what was answered is not asked twice


def test_a_key_that_is_refused_ends_the_start_in_one_line(
    cli: Callable[..., Said], server: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = cli(*words(server, tmp_path / "out"), "-R", "base_url=http://127.0.0.1:9/v1")
    assert said.code == 2
    assert "no server answers" in said.err
    assert KEY not in said.out + said.err
