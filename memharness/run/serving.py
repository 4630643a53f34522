"""A model server as a child process: started, waited for until it is healthy, stopped with everything it started."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from memharness.types import UserError

LINES = 15  # of a server's log that are shown when it fails
PATIENCE = 20.0  # seconds a server has to end by itself, before it is killed


@runtime_checkable
class Servable(Protocol):
    """A reader whose model can also be served behind the OpenAI API by the same engine with the same options."""

    async def prepare(self) -> None:
        """Make the model ready to load, once per machine."""

    def server(self, name: str, host: str, port: int, extra: Sequence[str]) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command of a server that answers to `name`, and what it wants in its environment.

        Raises:
            UserError: an extra argument is one that the reader sets itself.
        """


class ModelServer:
    """A server's process. As a context manager it is started and healthy inside, and gone after."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], host: str, port: int, log: Path, patience: float
    ) -> None:
        """Describe a server; nothing is started.

        Args:
            command: its words.
            environment: what is added to this process's environment.
            host: where it listens.
            port: where it listens.
            log: the file that takes its output.
            patience: seconds it has to become healthy.
        """
        self.command = command
        self.environment = environment
        self.address = f"http://{_reachable(host)}:{port}"
        self.log = log
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ModelServer:
        """Start it, and wait until it is healthy.

        Raises:
            UserError: it ended, or was not healthy in time; the last lines of its log are in the message.
        """
        try:
            self.start()
            self.wait_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Stop it."""
        self.stop()

    def start(self) -> None:
        """Start it, in a session of its own: a Ctrl-C on the terminal is ours to pass on, once.

        Raises:
            UserError: the log cannot be written.
        """
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            output = self.log.open("wb")
        except OSError as error:
            raise UserError(f"{self.log}: cannot be written ({error.strerror})") from None
        with output:
            self._process = subprocess.Popen(
                self.command,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_healthy(self) -> None:
        """Wait until `/health` answers.

        Raises:
            UserError: it ended, or did not answer in time.
        """
        until = time.monotonic() + self._patience
        while not self._healthy():
            if self.ended is not None:
                raise UserError(f"the server ended with code {self.ended} before it was ready; {self.last_words()}")
            if time.monotonic() > until:
                raise UserError(
                    f"the server was not ready after {self._patience:.0f} s (--timeout); {self.last_words()}"
                )
            time.sleep(0.25)

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/health", timeout=5) as reply:
                return bool(reply.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    @property
    def ended(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._process.poll() if self._process is not None else None

    def wait(self) -> int:
        """Wait until it ends by itself, and return its exit code."""
        assert self._process is not None
        return self._process.wait()

    def stop(self) -> None:
        """Ask it to end, and after `PATIENCE` make it; what it started goes with it."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                process.send_signal(signal.SIGTERM)
                process.wait(PATIENCE)
        finally:  # also where a second Ctrl-C cuts the waiting short
            with contextlib.suppress(ProcessLookupError):  # its session has the number of its first process
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def last_words(self) -> str:
        """The end of its log, for an error message."""
        try:
            with self.log.open(errors="replace") as file:
                lines = deque(filter(None, map(str.rstrip, file)), LINES)
        except OSError:
            lines = deque()
        said = "\n  ".join(lines) or "nothing"
        return f"its last lines, of {self.log}:\n  {said}"


def free_port(host: str, port: int) -> int:
    """A port that nobody listens on: the given one, or any if it is 0.

    Raises:
        UserError: it is in use, or the host is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OverflowError:
            raise UserError(f"--port {port}: ports go from 0 to 65535") from None
        except OSError as error:
            raise UserError(
                f"--host {host} --port {port}: {error.strerror}; choose another, or --port 0 for any"
            ) from None
        return int(probe.getsockname()[1])


def _reachable(host: str) -> str:
    """A host as a client on this machine names it."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1" if host == "0.0.0.0" else "[::1]"
    return f"[{host}]" if ":" in host else host
