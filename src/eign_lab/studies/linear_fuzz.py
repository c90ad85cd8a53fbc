"""Does every suggestion satisfy the linear constraints? Made-up boxes and rows, and points that methods ask for.

    python -m eign_lab.studies.linear_fuzz --studies 10000

Inequalities are checked in rational arithmetic, equalities to 1e-12 of the size of their row. Boxes are of all
magnitudes, with fixed coordinates; rows are inequalities, bands, equalities, and rows that touch the box in a corner.
A study whose rows leave no point is counted and passed over.
"""

import argparse
import sys
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np

import eign
from eign.arrays import Array
from eign.constraints import LinearRows
from eign.region import EmptyRegion

METHODS = ("sobol", "random", "sobol", "random", "sobol", "random", "sobol", "random", "slsqp", "auto")
POINTS = {"auto": 8}


def made_up(rng: np.random.Generator) -> tuple[eign.Box, LinearRows]:
    """A box and rows of it; most of them leave some points."""
    d = int(rng.integers(1, 7))
    size = 10.0 ** rng.uniform(-6, 6, d)
    low = rng.uniform(-3, 3, d) * size
    width = size * 10.0 ** rng.uniform(-2, 1, d) * (rng.random(d) > 0.1)
    if not width.any():
        width[0] = size[0]
    box = eign.Box(np.column_stack([low, low + width]))
    k = int(rng.integers(1, 5))
    A = rng.normal(size=(k, d)) * (rng.random((k, d)) < 0.7) / np.where(width > 0, width, size)
    if rng.random() < 0.3:
        A = np.round(A * width) / np.where(width > 0, width, size)  # rows along edges and diagonals
    inside = low + width * rng.random(d)
    at, span = A @ inside, np.abs(A) @ width
    lower, upper = np.full(k, -np.inf), np.full(k, np.inf)
    for i in range(k):
        kind = rng.choice(["upper", "lower", "band", "thin", "equal"], p=[0.35, 0.25, 0.2, 0.1, 0.1])
        room = span[i] * rng.uniform(0, 0.3) * (kind != "thin") + (kind == "thin") * 1e-13 * abs(at[i])
        if kind != "lower":
            upper[i] = at[i] + room
        if kind != "upper":
            lower[i] = at[i] - room
        if kind == "equal":
            lower[i] = upper[i] = at[i]
    return box, LinearRows(A, lower, upper)


def is_outside(x: Array, box: eign.Box, rows: LinearRows) -> str | None:
    """What is wrong with a suggestion; None if nothing is."""
    if not bool(box.contains(x)):
        return "outside the box"
    size = np.abs(rows.A) @ np.maximum(np.abs(box.lower), np.abs(box.upper))
    for i in range(len(rows)):
        value = sum((Fraction(a) * Fraction(b) for a, b in zip(rows.A[i], x, strict=True)), Fraction(0))
        for side, limit in (("lower", float(rows.lower[i])), ("upper", float(rows.upper[i]))):
            if not np.isfinite(limit):
                continue
            excess = Fraction(limit) - value if side == "lower" else value - Fraction(limit)
            # A band narrower than rounding, and what other rows press into a plane, hold as equalities do.
            slack = 1e-12 * max(size[i], abs(limit)) if _is_tight(rows, i, size[i]) else 0.0
            if excess > Fraction(slack):
                return f"row {i} by {float(excess):.1e} of {size[i]:.1e}"
    return None


def _is_tight(rows: LinearRows, i: int, size: float) -> bool:
    return bool(rows.upper[i] - rows.lower[i] <= 1e-9 * size)


def studied(number: int, seed: int) -> tuple[str, list[str]]:
    """One study: what it was, and what was wrong with its points."""
    rng = np.random.default_rng([seed, number])
    box, rows = made_up(rng)
    method = METHODS[number % len(METHODS)]
    try:
        opt = eign.Optimizer(box, method=method, linear=rows, seed=number, check_gradients="probe")
    except EmptyRegion:
        return "no point", []
    except ValueError as error:
        return f"refused: {str(error)[:40]}", []
    target, wrong = box.from_unit(rng.random(box.free_dim)), []
    scale = np.where(box.free, box.upper - box.lower, 1.0)
    for _ in range(POINTS.get(method, 6)):
        x = opt.ask()
        if (problem := is_outside(x, box, rows)) is not None:
            wrong.append(f"study {number}, {method}, {opt.reasons[-1:]}: {problem}")
        away = (x - target) / scale
        opt.tell(x, float(away @ away), 2.0 * away / scale)
    return method, wrong


def main() -> None:
    """Count; the exit code says whether a point was outside."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds, wrong = Counter[str](), []
    for number in range(arguments.studies):
        kind, found = studied(number, arguments.seed)
        kinds[kind] += 1
        wrong += found
        for line in found:
            print(line, flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    print(f"{len(wrong)} points outside in {arguments.studies} studies")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
