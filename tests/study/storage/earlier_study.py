"""A study that an earlier version of eign wrote, and how it goes on: what `data/` holds for the tests.

The files were written by the last commit before product and laboratory were parted. They stay as they are: users have
such files. `data/expected.json` is what that commit read from them and how it continued. Where a method changes by
intent, its next points do too: `python tests/study/storage/earlier_study.py` then writes them anew, and nothing else.
"""

import gzip
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from eign import Box, Optimizer
from eign.study.handle import handle

DATA = Path(__file__).parent / "data"
METHODS = ("auto", "cma-es", "ei-gn", "l-bfgs")
BOX = Box({"rate": (1e-5, 1e-1), "width": (-1.0, 1.0)}, log=["rate"])


def answer(x: np.ndarray) -> tuple[float, list[float]]:
    """A bowl with ripples, along the logarithm of the rate and along the width."""
    rate, width = np.log10(x[0]), x[1]
    value = (rate + 3.0) ** 2 / 4 + (width - 0.4) ** 2 + 0.3 * np.cos(4.0 * rate) * np.sin(5.0 * width)
    along_rate = (rate + 3.0) / 2 - 1.2 * np.sin(4.0 * rate) * np.sin(5.0 * width)
    along_width = 2 * (width - 0.4) + 1.5 * np.cos(4.0 * rate) * np.cos(5.0 * width)
    return float(value), [float(along_rate / (x[0] * np.log(10))), float(along_width)]


def write(path: Path, method: str) -> None:
    """A study of 14 evaluations, one never asked for, one failed, one with half a gradient, and two points pending."""
    with Optimizer(BOX, method=method, seed=7, storage=path) as opt:
        opt.tell({"rate": 1e-2, "width": 0.1}, *answer(np.array([1e-2, 0.1])))
        for number in range(13):
            x = opt.ask()
            value, gradient = answer(x)
            match number:
                case 3:
                    opt.tell(x, None)
                case 5:
                    opt.tell(x, value, [gradient[0], None])
                case _:
                    opt.tell(x, value, gradient)
        opt.ask(2)


def unpack(method: str, directory: Path) -> Path:
    """The study as a file that may be written to."""
    path = directory / f"{method}.db"
    with gzip.open(DATA / f"{method}.db.gz") as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return path


def contents(opt: Optimizer) -> dict[str, Any]:
    """What a study holds, as JSON has it: numbers to the last bit, None for what is missing."""

    def plain(numbers: np.ndarray) -> list[Any]:
        return json.loads(json.dumps(numbers.tolist()).replace("NaN", "null"))

    history = opt.history
    return {
        "seed": opt.seed,
        "x": plain(history.x),
        "y": plain(history.y),
        "grad": plain(history.grad),
        "reasons": opt.reasons,
        "pending": plain(opt.pending),
        "pending_reasons": handle(opt).pending.reasons,
    }


def continued(opt: Optimizer) -> np.ndarray:
    """The points `5 x 2` that `ask` gives: the two that are pending, one beside them, and two when all is told."""
    points = [opt.ask() for _ in range(3)]
    for x in points:
        opt.tell(x, *answer(x))
    for _ in range(2):
        points.append(opt.ask())
        opt.tell(points[-1], *answer(points[-1]))
    return np.array(points)


def _renew() -> None:
    expected = json.loads((DATA / "expected.json").read_text())
    with tempfile.TemporaryDirectory() as directory:
        for method in METHODS:
            with Optimizer.resume(unpack(method, Path(directory))) as opt:
                expected[method]["next"] = continued(opt)[2:].tolist()
    (DATA / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    _renew()
