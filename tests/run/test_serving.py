"""A server's process: waited for, explained when it fails, and gone with its children afterwards."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memharness.cli import command_line
from memharness.run.serving import ModelServer, free_port
from memharness.types import UserError

# A server that is healthy after a moment, has a child of its own, and writes down both process ids.
GOOD = """
import http.server, os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[2], "w").write(f"{os.getpid()} {child.pid}")
time.sleep(0.3)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
BAD = "import sys; print('loading'); sys.exit('no such device: gpu7')"
DEAF = "import time; print('still loading', flush=True); time.sleep(600)"
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + GOOD


@pytest.fixture
def server(tmp_path: Path) -> Callable[..., ModelServer]:
    def make(source: str, patience: float = 30.0) -> ModelServer:
        script = tmp_path / "server.py"
        script.write_text(source)
        port = free_port("127.0.0.1", 0)
        command = [sys.executable, str(script), str(port), str(tmp_path / "pids")]
        return ModelServer(command, {"SAID": "so"}, "127.0.0.1", port, tmp_path / "log" / "server.log", patience)

    return make


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(tmp_path: Path) -> list[int]:
    return [int(word) for word in (tmp_path / "pids").read_text().split()]


def gone(processes: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(map(alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(alive, processes))


def test_it_is_healthy_inside_and_gone_with_its_children_after(
    server: Callable[..., ModelServer], tmp_path: Path
) -> None:
    with server(GOOD) as running:
        assert running.ended is None
        processes = pids(tmp_path)
        assert all(map(alive, processes))
    assert gone(processes)


def test_one_that_ignores_the_request_to_end_is_made_to(
    server: Callable[..., ModelServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memharness.run.serving.PATIENCE", 0.3)
    with server(STUBBORN):
        processes = pids(tmp_path)
    assert gone(processes)


def test_one_that_ends_early_is_quoted(server: Callable[..., ModelServer]) -> None:
    with pytest.raises(UserError, match=r"ended with code 1 before it was ready") as caught, server(BAD):
        pass
    assert "no such device: gpu7" in str(caught.value)
    assert "server.log" in str(caught.value)


def test_one_that_is_never_ready_is_given_up_and_quoted(server: Callable[..., ModelServer]) -> None:
    with pytest.raises(UserError, match="not ready after 1 s") as caught, server(DEAF, patience=1.0):
        pass
    assert "still loading" in str(caught.value)


def test_a_port_in_use_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"--port {port}: Address already in use; choose another"):
            free_port("127.0.0.1", port)
    assert free_port("127.0.0.1", port) == port
    with pytest.raises(UserError, match="ports go from 0 to 65535"):
        free_port("127.0.0.1", 70_000)


# ------------------------------------------------------------------------------------------------------ the command

READER = """
import sys
from memharness.config import Config
from memharness.reader import Reader, ReaderCard

class Served(Reader):
    config_class = Config
    def __init__(self, model, config, media):
        super().__init__(model, config, media)
        self.card = ReaderCard("vllm", model, "1", "toy")
    async def prepare(self): pass
    async def generate(self, request): raise NotImplementedError
    def server(self, name, host, port, extra):
        return [sys.executable, {script!r}, str(port), {pids!r}, name, *extra], {{}}
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """`memharness serve` in a process of its own, where `vllm` is a toy whose server is `GOOD`."""
    (tmp_path / "server.py").write_text(GOOD)
    (tmp_path / "toy.py").write_text(READER.format(script=str(tmp_path / "server.py"), pids=str(tmp_path / "pids")))
    start = (
        "import sys, toy, memharness.run.setup as setup\n"
        "setup.find = lambda kind, name: toy.Served\n"
        "from memharness.cli import command_line\n"
        "sys.exit(command_line(['serve', *sys.argv[1:]]))"
    )
    return [sys.executable, "-c", start]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_serve_says_how_to_ask_and_ends_cleanly(command: list[str], tmp_path: Path, how: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "MEMHARNESS_HOME": str(tmp_path / "home")}
    environment |= {"VLLM_API_KEY": "sk-very-secret-indeed"}
    process = subprocess.Popen(
        [*command, "some/model-7b", "--port", "0", "--", "--more", "1"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    ready, words = process.stdout.readline(), process.stdout.readline()
    assert "serves model-7b" in ready
    assert "OPENAI_API_KEY=$VLLM_API_KEY OPENAI_BASE_URL=http://127.0.0.1:" in words
    assert "memharness run --reader openai:model-7b -R images=false" in words  # its card says that it sees none
    processes = pids(tmp_path)
    arguments = Path(f"/proc/{processes[0]}/cmdline").read_text().split("\0")
    assert arguments[-4:-1] == ["model-7b", "--more", "1"]
    process.send_signal(how)
    out, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert gone(processes)
    assert "secret" not in ready + words + out + said
    assert not any("secret" in file.read_text() for file in (tmp_path / "home").rglob("*.log"))


def test_serve_says_when_the_server_dies_later(command: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "MEMHARNESS_HOME": str(tmp_path / "home")}
    process = subprocess.Popen(
        [*command, "m", "--port", "0"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    processes = pids(tmp_path)
    os.kill(processes[0], signal.SIGKILL)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "the server ended with code -9" in said
    assert gone(processes)


def test_serve_refuses_before_it_starts(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memharness.readers.vllm.installed", lambda: False)
    assert command_line(["serve", "some/model"]) == 2
    assert "vLLM is not installed; run pip install memharness-bench[vllm]" in capfd.readouterr().err
    monkeypatch.setattr("memharness.readers.vllm.installed", lambda: True)
    assert command_line(["serve", "no-such-folder"]) == 2
    assert "vllm:no-such-folder: no such folder" in capfd.readouterr().err
