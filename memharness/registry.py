"""The lazy registry: plug-ins by name over entry points, or by class from any module or file."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from memharness.types import UserError, did_you_mean

KINDS = ("methods", "benchmarks", "readers", "embedders", "image_backends", "metrics", "commands", "trainers")


@dataclass(frozen=True)
class Entry:
    """A plug-in that can be loaded: its name, `module:Class`, and the distribution that brings it."""

    kind: str
    name: str
    target: str
    distribution: str

    def load(self) -> Any:
        """Import the class.

        Raises:
            UserError: if the plug-in's module cannot be imported; the message names the distribution.
        """
        return _load_target(self.target, f"{self.kind[:-1]} {self.name} (from {self.distribution})")


@functools.cache
def entries(kind: str) -> Mapping[str, Entry]:
    """Plug-ins of a kind by name, nothing imported. Built-in and outside ones are found the same way.

    Raises:
        UserError: if two distributions claim one name.
    """
    found: dict[str, Entry] = {}
    for point in sorted(entry_points(group=f"memharness.{kind}"), key=lambda point: (point.name, point.value)):
        entry = Entry(kind, point.name, point.value, _distribution(point))
        before = found.setdefault(point.name, entry)
        if before.target != entry.target:
            raise UserError(
                f"{kind}: both {before.distribution} ({before.target}) and {entry.distribution} ({entry.target}) "
                f"bring one named {point.name}; uninstall one of them"
            )
    return found


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"


def find(kind: str, name: str) -> Any:
    """The class behind a name, `package.module:Class` or `path/file.py:Class`.

    Raises:
        UserError: for an unknown name (with "did you mean"), or a module, file or class that cannot be loaded.
    """
    known = entries(kind)
    if name in known:
        return known[name].load()
    if is_class_path(name):
        return _load_target(name, f"{kind[:-1]} {name}")
    if not known:
        raise UserError(f"no {kind} are installed; run `pip install -e .` in the memharness checkout")
    raise UserError(f"no {kind[:-1]} is called {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}")


def fault(error: BaseException) -> str:
    """A plug-in's own exception in one line, with the place that raised it."""
    frames = [] if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)  # which says it itself
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{at}"


@contextmanager
def plugin(what: str) -> Iterator[None]:
    """Name the plug-in whose code, run inside, raises what is no message for a user.

    Raises:
        UserError: for any exception of the plug-in's; its own `UserError` as it is.
    """
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{what}: {fault(error)}") from error


def is_class_path(name: str) -> bool:
    """Whether a name is `package.module:Class` or `file.py:Class`, not a plug-in's name or a reader spec."""
    head, colon, tail = name.rpartition(":")
    return bool(colon) and tail.isidentifier() and (head.endswith(".py") or ("." in head and "/" not in head))


def split_spec(kind: str, spec: str) -> tuple[str, str]:
    """A reader or embedder spec as (plug-in name, model): `openai:gpt-x` → (`openai`, `gpt-x`)."""
    head, _, model = spec.partition(":")
    if head in entries(kind) or not is_class_path(spec):
        return head, model
    return spec, ""


def short_name(name: str) -> str:
    """A name fit for a folder: `pkg.mod:Class` → `Class`."""
    return name.rpartition(":")[2] if is_class_path(name) else name


def _load_target(target: str, what: str) -> Any:
    module_name, _, attribute = target.partition(":") if not target.count(":") > 1 else target.rpartition(":")
    try:
        module = _load_file(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
    except UserError:
        raise
    except ImportError as error:
        raise UserError(f"{what}: cannot import {module_name}: {error}; is its package or extra installed?") from error
    except (Exception, SystemExit) as error:
        raise UserError(f"{what}: cannot import {module_name}: {fault(error)}") from error
    try:
        return functools.reduce(getattr, attribute.split("."), module)
    except AttributeError:
        names = [name for name, value in vars(module).items() if isinstance(value, type) and not name.startswith("_")]
        raise UserError(f"{what}: {module_name} has no {attribute}{did_you_mean(attribute, names)}") from None


def _load_file(path: Path) -> Any:
    path = path.resolve()
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    name = f"memharness_file_{path.stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UserError(f"{path}: {fault(error)}") from error
    return module
