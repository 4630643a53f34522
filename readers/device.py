"""Work on the device thread: two threads that each run a model would spin against each other for the cores."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from memharness.reader import device_thread

_NO_MEMORY = ("out of memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")

P = ParamSpec("P")
T = TypeVar("T")


async def run(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function on the device thread, in a copy of the caller's context.

    Cancelling the await leaves a function that has begun to run to its end; one still queued never starts.
    """
    call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(device_thread(), call)


async def prepare(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function on the one thread that makes inputs ready, beside the device thread and what runs there."""
    call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(device_thread("input"), call)


def set_threads(wanted: int) -> int:
    """Set how many CPU threads torch uses, on the thread that calls (OpenMP keeps the number per thread).

    Args:
        wanted: threads, or 0 for the cores this process may use. `OMP_NUM_THREADS` wins over 0, so that several
            workers on one machine can be told to share it.

    Returns:
        the number in use.
    """
    import torch

    if wanted or "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(wanted or _cores())
    return torch.get_num_threads()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pick(device: str) -> str:
    """A device name for torch: `auto` is `cuda` where there is one, else `cpu`."""
    import torch

    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def short_of_memory(error: BaseException) -> bool:
    """Whether an error says that the device has too little memory; only CUDA's has a class of its own."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)


def free_memory() -> None:
    """Give back what torch holds for tensors that are gone."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def quiet() -> None:
    """Keep transformers' progress bars off the terminal, where the run's own progress is shown."""
    import transformers

    disable: Callable[[], None] = transformers.utils.logging.disable_progress_bar
    disable()
