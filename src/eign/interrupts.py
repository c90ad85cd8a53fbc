"""Signals: Ctrl-C waits until steps that belong together are done, and other ends of a process are as orderly."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """SIGINT that arrives in the block is handled after it, by whoever handled it before.

    Python gives signals to the main thread alone; in any other this does nothing, and needs to do nothing.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: received.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for call in received[:1]:
            handler(*call)


@contextmanager
def orderly_end() -> Iterator[None]:
    """SIGTERM and SIGHUP that arrive in the block end it as Ctrl-C does, and after it the process.

    A batch system or a terminal that is closed sends them. Who handles them already goes on doing so.
    """
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    is_main = threading.current_thread() is threading.main_thread()
    ours = [number for number in signals if is_main and signal.getsignal(number) is signal.SIG_DFL]
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if received:
            signal.raise_signal(received[0])
