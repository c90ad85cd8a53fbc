"""Random sequences of ask, tell and retract, with whatever users may tell: no stray exception, no lost evaluation.

Each sequence has a number, and all that happens in it follows from that: a box (tiny, huge, logarithmic, with fixed
coordinates), a method with options, then batches, points told out of order or never asked for, points told again,
values and slopes over 600 decades, missing parts, failures, declared noise, points taken back, and copies that go on
in the place of the study; two of five studies whose method takes constraints have some, black-box and linear. A fault
is an exception, a method that failed and was replaced, a warning of NumPy's, a suggestion that is no point of the box
or violates a linear row by however little, an evaluation that is not in the history as it was told.

    python -m eign_lab.studies.random_sequences --count 10000 --results results/random_sequences.jsonl
    python -m eign_lab.studies.random_sequences --only 4711

The results have a line for each fifty sequences; those that are there are not run again.
"""

import argparse
import json
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from eign.arrays import LARGEST, Array
from eign.space import Box
from eign.strategies.registry import methods, strategy
from eign.study.handle import restore, snapshot
from eign.study.optimizer import Optimizer
from eign_lab.studies.linear_constraints import fault as broken_row
from eign_lab.studies.random_constraints import Constrained, random_constraints

BLOCK: Final = 50
_ROUNDED: Final = 1e-6
WITHOUT_MODEL: Final = ("cma-es", "l-bfgs", "random", "reinforce", "slsqp", "sobol")
_SMALL: Final = {"restarts": 2, "raw_samples": 16, "candidates": 32, "samples": 16}
# What users are told about their data; anything else that is warned of is a fault.
_EXPECTED_WARNINGS: Final = ("was told before with", "gradient", "nearly singular", "which is next to x = ")


@final
class FaultError(AssertionError):
    """Something that must not happen, though nothing was raised."""


def random_box(rng: np.random.Generator) -> Box:
    """One to four coordinates, mostly ordinary, sometimes at the ends of what floats are."""
    dim = int(rng.choice([1, 2, 3, 4], p=[0.3, 0.4, 0.2, 0.1]))
    kind = rng.choice(["ordinary", "mixed", "tiny", "huge"], p=[0.5, 0.3, 0.1, 0.1])
    decades = {"ordinary": (-2, 3), "mixed": (-150, 150), "tiny": (-300, -290), "huge": (290, 307)}[kind]
    bounds, log = [], []
    for i in range(dim):
        width = 10.0 ** rng.uniform(*decades)
        low = width * rng.choice([0.0, -1.0, -0.5, 1.0, rng.uniform(-3, 3)])
        if rng.random() < 0.15:
            low = width * 10.0 ** rng.uniform(-6, -1)
            log.append(i)
        is_fixed = i > 0 and rng.random() < 0.1
        bounds.append((low, low if is_fixed else min(low + width, LARGEST)))
    names = [f"p{i}" for i in range(dim)] if rng.random() < 0.2 else None
    return Box(bounds, log=[i for i in log if bounds[i][0] > 0], names=names)


def random_options(method: str, rng: np.random.Generator) -> dict[str, Any]:
    """Small searches, so that many sequences are run, and now and then a setting that nobody needs every day."""
    known = strategy(method).options
    options: dict[str, Any] = {name: value for name, value in _SMALL.items() if name in known}
    if "n_init" in known:
        options["n_init"] = int(rng.integers(0, 6))
    if "noise" in known and rng.random() < 0.2:
        options["noise"] = "learn" if rng.random() < 0.5 else 1e-4
    elif "hyperparameters" in known and rng.random() < 0.1:
        options["hyperparameters"] = {"lengthscale": 10.0 ** rng.uniform(-2, 1)}
    if "kernel" in known and rng.random() < 0.2:
        options["kernel"] = "rbf"
    return options


def method_of(number: int) -> str:
    """A method without a model in two of three sequences, as they are a hundred times faster, and one with a model."""
    third, among = divmod(number, 3)
    names = [name for name in sorted(methods()) if (name in WITHOUT_MODEL) == (among < 2)]
    return names[(2 * third + among if among < 2 else third) % len(names)]


class Answers:
    """What the function of a user answers: one of several kinds for a whole sequence."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        kinds = ["smooth", "one scale", "penalties", "every scale", "constant", "few decades"]
        self._kind = rng.choice(kinds, p=[0.3, 0.15, 0.15, 0.25, 0.05, 0.1])
        self._decade = rng.uniform(-300, 300)
        self._missing = float(rng.choice([0.0, 0.3, 1.0], p=[0.5, 0.3, 0.2]))
        self._failing = float(rng.choice([0.0, 0.3, 0.9], p=[0.7, 0.25, 0.05]))
        self._with_noise = rng.random() < 0.15

    def _numbers(self, count: int) -> Array:
        rng, numbers = self._rng, self._rng.normal(size=count)
        match self._kind:
            case "one scale":
                numbers *= 10.0**self._decade
            case "penalties":
                numbers[rng.random(count) < 0.3] = rng.choice([1e30, 1e200, LARGEST])
            case "every scale":
                numbers *= 10.0 ** rng.uniform(-320, 307, count)
                numbers[rng.random(count) < 0.1] = 0.0
            case "constant":
                numbers[:] = 1.0
            case "few decades":
                numbers *= 10.0 ** rng.uniform(-4, 4, count)
        return numbers

    def observe(self, x: Array, u: Array) -> dict[str, Any]:
        """The arguments of `Optimizer.tell` beside x (d,), for the point u of the unit cube."""
        rng, dim = self._rng, len(x)
        value, grad = float(self._numbers(1)[0]), self._numbers(dim)
        if self._kind == "smooth":
            value = float(np.sin(5 * u).sum())
            grad[:] = 1.0
            grad[: len(u)] = 5 * np.cos(5 * u)
        grad[rng.random(dim) < self._missing] = np.nan
        told: dict[str, Any] = {"y": value, "grad": None if rng.random() < 0.1 else grad}
        if rng.random() < self._failing:
            told = {"y": (None, np.nan, np.inf, -np.inf)[rng.integers(4)], "grad": None}
        if self._with_noise:
            told["y_var"] = abs(float(self._numbers(1)[0]))
            told["grad_var"] = np.abs(self._numbers(dim))
        return told


class Sequence:
    """One study and what happens to it."""

    def __init__(self, number: int) -> None:
        """Everything follows from the number."""
        self._rng = rng = np.random.default_rng([number, 2026])
        self.method = method_of(number)
        self._answers = Answers(rng)
        self._told = 0
        # Numbers of their own, so that a sequence without constraints is what it was before there were any.
        self._constraints_rng = np.random.default_rng([number, 24])
        self._constrained = Constrained()
        self._opt = self._begun(number)
        count = len(self._opt.constraints)
        self._constraint_answers = [Answers(self._constraints_rng) for _ in range(count)]

    def _begun(self, number: int) -> Optimizer:
        rng, options = self._rng, random_options(self.method, self._rng)
        mode, maximize = rng.choice(["probe", "passive", "off"]), bool(rng.random() < 0.5)
        while True:
            box = random_box(rng)
            self._constrained = random_constraints(box, self.method, self._constraints_rng)
            try:
                return Optimizer(
                    box,
                    method=self.method,
                    seed=number,
                    maximize=maximize,
                    options=options,
                    check_gradients=False if mode == "off" else str(mode),  # type: ignore[arg-type]
                    **self._constrained.arguments(),
                )
            except ValueError as error:
                if "too narrow" not in str(error):
                    raise

    def run(self) -> None:
        """Five to twenty calls.

        Raises:
            FaultError: something is wrong that raises nothing; anything else that is raised is a fault too.
        """
        rng = self._rng
        actions = [self._ask, self._tell_pending, self._tell_another, self._tell_again, self._retract, self._copy]
        for _ in range(int(rng.integers(5, 20))):
            rng.choice(actions, p=[0.3, 0.47, 0.08, 0.07, 0.04, 0.04])()  # type: ignore[arg-type]
            if self._opt.history.has_y.any() and not np.isfinite(self._opt.best.y):
                raise FaultError(f"best.y = {self._opt.best.y!r}")

    def _ask(self) -> None:
        count = int(self._rng.choice([1, 1, 1, 2, 5]))
        points = self._opt.ask(count)
        if points.shape != (count, self._opt.box.dim) or not self._opt.box.contains(points).all():
            raise FaultError(f"ask({count}) gave {points.tolist()} in {self._opt.box!r}")
        rows, region = self._constrained.rows, self._constrained.region
        if rows is not None and region is not None:
            for x in points:
                if (broken := broken_row(x, rows, self._opt.box, region)) is not None:
                    raise FaultError(f"ask({count}) gave {x.tolist()}, {broken}")

    def _observed(self, x: Array) -> dict[str, Any]:
        """The arguments of `Optimizer.tell` beside x (d,)."""
        u = self._opt.box.to_unit(x)
        told = self._answers.observe(x, u)
        outputs = [answers.observe(x, u) for answers in self._constraint_answers]
        for part, name in (("constraints", "y"), ("constraint_grads", "grad")):
            if outputs and self._constraints_rng.random() < 0.95:
                told[part] = {f"c{i}": each[name] for i, each in enumerate(outputs)}
        noisy = {f"c{i}": each["y_var"] for i, each in enumerate(outputs) if "y_var" in each}
        return {**told, "constraint_vars": noisy} if noisy else told

    def _tell(self, x: Array) -> None:
        told = self._observed(x)
        self._opt.tell(x, **told)
        self._told += 1
        history = self._opt.history
        # Next to a pending point that one is meant: digits may be lost on the way.
        moved = np.abs(self._opt.box.to_unit(history.x[-1:]) - self._opt.box.to_unit(x)).max(initial=0.0)
        if len(history) != self._told or moved > _ROUNDED:
            raise FaultError(f"{len(history)} evaluations of {self._told}, the last at {history.x[-1:].tolist()}")
        if told["y"] != history.y[-1] and (told["y"] is not None and np.isfinite(told["y"])):
            raise FaultError(f"told {told['y']!r}, and the history has {history.y[-1]!r}")
        for name, value in told.get("constraints", {}).items():
            kept = history.constraints[int(name[1:])].y[-1]
            if value != kept and value is not None and np.isfinite(value):
                raise FaultError(f"told {name} = {value!r}, and the history has {kept!r}")

    def _tell_pending(self) -> None:
        if len(self._opt.pending) == 0:
            self._ask()
        self._tell(self._rng.choice(self._opt.pending))

    def _tell_another(self) -> None:
        box, rng = self._opt.box, self._rng
        corner = rng.integers(0, 2, box.free_dim).astype(float)
        self._tell(box.from_unit(corner if rng.random() < 0.3 else rng.random(box.free_dim)))

    def _tell_again(self) -> None:
        if self._told:
            self._tell(self._rng.choice(self._opt.history.x))

    def _retract(self) -> None:
        if self._told:
            self._told -= self._opt.retract(self._rng.choice(self._opt.history.x))

    def _copy(self) -> None:
        """The study goes on from plain data, as a file has them."""
        self._opt = restore(json.loads(json.dumps(snapshot(self._opt))))


def _strict_warnings() -> None:
    """Warnings are errors, but for what users are told and for what packages say of each other."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DeprecationWarning)
    for text in _EXPECTED_WARNINGS:
        warnings.filterwarnings("ignore", message=f"(?s).*{text}")


def fault_of(number: int) -> dict[str, Any] | None:
    """What goes wrong in a sequence; None if nothing does."""
    with warnings.catch_warnings():
        _strict_warnings()
        try:
            Sequence(number).run()
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            kind = type(error).__name__
            place = f"{Path(where.filename).name}:{where.lineno}"
            return {
                "number": number,
                "method": method_of(number),
                "error": kind,
                "text": str(error)[:500],
                "at": place,
            }
    return None


def run_block(first: int) -> dict[str, Any]:
    """The sequences from `first` on, as a line of the results."""
    faults, slowest = [], 0.0
    began = time.perf_counter()
    for number in range(first, first + BLOCK):
        start = time.perf_counter()
        if (fault := fault_of(number)) is not None:
            faults.append(fault)
        slowest = max(slowest, time.perf_counter() - start)
    seconds = round(time.perf_counter() - began, 2)
    return {"first": first, "faults": faults, "seconds": seconds, "slowest": round(slowest, 2)}


def main() -> bool:
    """Run what is missing; whether a sequence has a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--results", type=Path, help="a line for each fifty; those that are there are not run again")
    parser.add_argument("--only", type=int, help="one sequence, with the traceback of its fault")
    options = parser.parse_args()
    if options.only is not None:
        _strict_warnings()
        Sequence(options.only).run()
        return False
    done: dict[int, dict[str, Any]] = {}
    if options.results and options.results.exists():
        rows = [json.loads(line) for line in options.results.read_text().splitlines()]
        done = {row["first"]: row for row in rows}
    for first in range(0, options.count, BLOCK):
        if first not in done:
            done[first] = run_block(first)
            for fault in done[first]["faults"]:
                print(f"{fault['number']:6d} {fault['method']}: {fault['error']}: {fault['text']}", flush=True)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(done[first]) + "\n")
    faults = [fault for row in done.values() for fault in row["faults"]]
    counts = Counter(fault["method"] for fault in faults)
    print(f"{len(done) * BLOCK} sequences, {len(faults)} with a fault {dict(counts) or ''}")
    return len(faults) > 0


if __name__ == "__main__":
    sys.exit(main())
