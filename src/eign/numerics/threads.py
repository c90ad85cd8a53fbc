"""Threads where they pay: whole Gaussian processes side by side, each with a single-threaded BLAS.

A factorisation of a few hundred rows gains little from a second BLAS thread and loses much to its synchronisation.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

Item = TypeVar("Item")
Result = TypeVar("Result")

# Below this many rows threads lose more by waiting for the interpreter, which they share, than they gain (measured).
_SMALLEST_SIZE: Final = 300


def map_threads(function: Callable[[Item], Result], items: Sequence[Item], *, size: int) -> list[Result]:
    """`[function(item) for item in items]`, on as many threads as torch may use if `size` rows are worth it."""
    import torch

    threads = min(torch.get_num_threads(), len(items))
    if threads < 2 or size < _SMALLEST_SIZE:
        return [function(item) for item in items]
    return list(_pool(threads).map(function, items))


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """One BLAS thread for NumPy and SciPy inside the block; PyTorch's threads stay as they are.

    A fifth of the 20 us of `ThreadpoolController.limit`, which a suggestion with a small model would pay three times.
    """
    limited = [(library, count) for library in _libraries() if (count := library.get_num_threads()) != 1]
    for library, _ in limited:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, count in limited:
            library.set_num_threads(count)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Torch and NumPy inside the block as the models expect them, whatever the process has set.

    One torch thread: sums in another order give other bits, and small problems are faster so. Tensors on the CPU, where
    the arrays are. Numbers that underflow are 0, and others that are not finite are dealt with where they come up.

    What needs torch has imported it before; for what does not it stays unloaded.
    """
    torch = sys.modules.get("torch")
    with np.errstate(over="warn", divide="warn", invalid="warn", under="ignore"):
        if torch is None:
            yield
            return
        threads, device = torch.get_num_threads(), torch.get_default_device()
        torch.set_num_threads(1)
        if device.type != "cpu":
            torch.set_default_device("cpu")
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            if device.type != "cpu":
                torch.set_default_device(device)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="eign-fit")


@cache
def _libraries() -> list[Any]:
    """Those of BLAS that are loaded."""
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
