"""Random studies with linear constraints: is any point suggested that violates one, by however little?

Each study has a number, and all that happens in it follows from that: a box of any scale with fixed coordinates, rows
through it that leave much room, little or none, equalities among them, perhaps black-box constraints, a method, single
points and batches, values, slopes and failures. Every suggestion is checked in rational arithmetic: inequalities
hold exactly, also as NumPy computes them; equalities, and rows that leave no room, to 1e-12 of their scale.

    python -m eign_lab.studies.linear_constraints --count 10000 --results results/linear_constraints.jsonl
    python -m eign_lab.studies.linear_constraints --only 4711
"""

import argparse
import json
import time
import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from eign.arrays import Array
from eign.constraints import Limits, LinearRows
from eign.data import Observations
from eign.region import EmptyRegion, Region, region_in
from eign.region.rows import EQUALITY, row_excess, row_scales
from eign.space import Box
from eign.study.optimizer import Optimizer

BLOCK: Final = 100
# Mostly methods without a model, so that many studies are run; the others with small searches.
_METHODS: Final = {"sobol": 0.3, "random": 0.25, "slsqp": 0.25, "auto": 0.1, "log-ei": 0.05, "d-ei-gn": 0.05}
_MODELLED: Final = ("auto", "log-ei", "d-ei-gn")
_SMALL: Final = {"restarts": 2, "raw_samples": 16}


def random_rows(rng: np.random.Generator) -> tuple[Box, LinearRows]:
    """A box and rows around one of its points, so that few are empty."""
    dim = int(rng.integers(1, 7))
    count = int(rng.choice([1, 2, 3, 6, 20]))
    scale = 10.0 ** rng.integers(-6, 13, size=dim)
    low = scale * rng.choice([0.0, -1.0, 1.0, 1e3], size=dim)
    high = np.where((rng.random(dim) < 0.1) & (np.arange(dim) > 0), low, low + scale)
    inside = low + rng.random(dim) * (high - low)
    matrix = rng.normal(size=(count, dim)) * 10.0 ** rng.integers(-6, 7, size=(count, 1)) / scale
    matrix[rng.random(matrix.shape) < 0.3] = 0.0
    value, spread = matrix @ inside, np.abs(matrix) @ (high - low)
    room = spread * 10.0 ** rng.choice([0.0, -1.0, -3.0, -6.0, -11.0], size=count)
    lower, upper = value - room * rng.random(count), value + room * rng.random(count)
    kind = rng.random(count)
    lower[kind < 0.5] = -np.inf
    equal = kind > rng.choice([0.7, 0.9, 2.0])
    equal[np.cumsum(equal) >= dim] = False
    lower[equal] = upper[equal] = value[equal]
    return Box(np.column_stack([low, high])), LinearRows(matrix, lower, upper)


def fault(x: Array, rows: LinearRows, box: Box, region: Region) -> str | None:
    """What is wrong with a suggestion; None if nothing is."""
    if not box.contains(x):
        return f"outside the box: {x.tolist()}"
    scales, computed, flat = row_scales(rows, box), row_excess(rows, x), region.is_flat(rows)
    for row, entries in enumerate(rows.A.tolist()):
        value = sum((Fraction(a) * Fraction(b) for a, b in zip(entries, x.tolist(), strict=True)), Fraction(0))
        low, high = float(rows.lower[row]), float(rows.upper[row])
        beyond = [Fraction(low) - value] if np.isfinite(low) else []
        beyond += [value - Fraction(high)] if np.isfinite(high) else []
        allowed = EQUALITY * scales[row] if flat[row] else 0.0
        if max(beyond) > allowed or computed[row] > allowed:
            return f"row {row} by {float(max(beyond)):.3g}, of a scale of {scales[row]:.3g}"
    return None


def run_study(number: int) -> tuple[str, int, str | None]:
    """The method, how many points were suggested, and the first fault."""
    rng = np.random.default_rng(np.random.SeedSequence([number, 24]))
    box, rows = random_rows(rng)
    method = str(rng.choice(list(_METHODS), p=list(_METHODS.values())))
    try:
        region = region_in(box, rows)
    except EmptyRegion:
        return "empty", 0, None
    count = int(rng.integers(0, 3))
    limits = Limits([f"c{j}" for j in range(count)], [-np.inf] * count, [0.0] * count) if count else None
    options = {"n_init": 3, **(_SMALL if method in ("log-ei", "d-ei-gn") else {})} if method != "sobol" else {}
    opt = Optimizer(
        box, method=method, seed=number, constraints=limits, linear=rows, options=options, check_gradients=False
    )
    normals, asked = rng.normal(size=(count + 1, box.dim)), 0
    for _ in range(3 if method in _MODELLED else 6):
        points = opt.ask(int(rng.integers(1, 4)))
        asked += len(points)
        for x in points:
            if (wrong := fault(x, rows, box, region)) is not None:
                return method, asked, f"{method}: {wrong}"
            if rng.random() < 0.9:
                opt.tell(_evaluated(x, box, normals, rng))
            else:
                opt.tell(x, None)
    return method, asked, None


def _evaluated(x: Array, box: Box, normals: Array, rng: np.random.Generator) -> Observations:
    """Waves along one direction for each output, with gradients that are missing here and there."""
    width = np.where(box.upper > box.lower, box.upper - box.lower, 1.0)
    u = (x - box.lower) / width
    parts = []
    for normal in normals:
        slope = 3.0 * np.cos(3.0 * normal @ u) * normal / width
        parts.append(Observations(x[None], [np.sin(3.0 * normal @ u)], [slope if rng.random() < 0.9 else np.nan * x]))
    return parts[0].with_constraints(parts[1:]) if len(parts) > 1 else parts[0]


def main() -> None:
    """Run the studies that the results do not have yet, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--first", type=int, default=0, help="number of the first study, for several processes")
    parser.add_argument("--count", type=int, default=10_000, help="number after the last one")
    parser.add_argument("--only", type=int)
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.only is not None:
        print(run_study(arguments.only))
        return
    done: list[dict[str, object]] = []
    if arguments.results is not None and arguments.results.exists():
        done = [json.loads(line) for line in arguments.results.read_text().splitlines()]
    for block in range(arguments.first // BLOCK + len(done), -(-arguments.count // BLOCK)):
        start = time.perf_counter()
        found = [run_study(block * BLOCK + i) for i in range(BLOCK)]
        faults = {block * BLOCK + i: one[2] for i, one in enumerate(found) if one[2] is not None}
        line: dict[str, object] = {
            "block": block,
            "studies": dict(Counter(method for method, _, _ in found)),
            "points": sum(points for _, points, _ in found),
            "faults": faults,
            "seconds": round(time.perf_counter() - start, 1),
        }
        done.append(line)
        if arguments.results is not None:
            with arguments.results.open("a") as file:
                file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
