"""Errors of the gradient check: alarms without a fault, and faults that are not found within 5d evaluations.

    python -m eign_lab.studies.gradient_faults --methods sobol l-bfgs --seeds 100 120 --out results/gradient_check.jsonl

Each problem is run for 5d evaluations, or until the alarm, with correct gradients, with faults, and with what must not
count as a fault: small errors of values and gradients, and noise. The coordinates of a fault are drawn by the seed. Two
coordinates that have the same derivative everywhere are not swapped: that would be no fault. Runs that the file has
already are not repeated. A fault counts as named if it is among those that the warning names.
"""

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations, product
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from eign import problems
from eign.arrays import Array
from eign.problems import Problem
from eign.study import GradientWarning, Optimizer
from eign.study.events import Ask
from eign.study.handle import handle

LARGEST_DIM: Final = 6
LARGER: Final = ("cosine-8", "powell-8")
FAULTS: Final = ("sign of one", "sign of all", "one doubled", "all doubled", "two swapped")
HARMLESS: Final = (
    *("correct", "all times 1.05", "each within 5 per cent", "values to 1e-6", "gradients to 1e-6"),
    *("noise 0.01 told", "noise 0.01 untold", "noise 0.0001 untold", "noisy gradients untold"),
)
# Of the noise: a hundredth of the deviation of f over the box.
SAMPLES: Final = 512

Mode = Literal["probe", "passive"]
Told = tuple[float, Array, float | None]
Answer = Callable[[Array], Told]


def answers(problem: Problem, case: str, seed: int) -> Answer:
    """The function that a user with this fault would give: value, gradient and known variance at a point."""
    rng = np.random.default_rng([seed, problem.dim])
    i, j = coordinates(problem, rng)
    widths = problem.bounds.upper - problem.bounds.lower
    inside = problem.bounds.from_unit(rng.random((SAMPLES, problem.dim)))
    values, gradients = problem.evaluate(inside)
    spread, steepness = float(np.std(values)), np.std(gradients, axis=0)
    factors = 1.0 + 0.05 * rng.uniform(-1.0, 1.0, problem.dim)
    waves = rng.uniform(100.0, 1000.0, problem.dim) / widths
    whole = np.eye(problem.dim)
    one, swapped = np.arange(problem.dim) == i, np.arange(problem.dim)
    swapped[[i, j]] = j, i
    distortion = {
        "sign of one": np.diag(1.0 - 2.0 * one),
        "sign of all": -whole,
        "one doubled": np.diag(1.0 + one),
        "all doubled": 2.0 * whole,
        "two swapped": whole[swapped],
        "all times 1.05": 1.05 * whole,
        "each within 5 per cent": np.diag(factors),
    }.get(case, whole)
    value_noise = 0.01 if case.startswith("noise 0.01") else 1e-4 if case.startswith("noise 0.0001") else 0.0
    slope_noise = 0.1 * (case == "noisy gradients untold")

    def answer(x: Array) -> Told:
        value, gradient = problem(x)
        ripple = 1.0 + 1e-6 * float(np.sin(waves @ x))
        noise = rng.standard_normal(problem.dim + 1)
        value *= ripple if case == "values to 1e-6" else 1.0
        gradient = distortion @ gradient * (ripple if case == "gradients to 1e-6" else 1.0)
        value += value_noise * spread * float(noise[0])
        gradient += slope_noise * steepness * noise[1:]
        return value, gradient, (0.01 * spread) ** 2 if case == "noise 0.01 told" else None

    return answer


def coordinates(problem: Problem, rng: np.random.Generator) -> tuple[int, int]:
    """The coordinates of a fault: any first, and a second whose derivative is another function."""
    points = problem.bounds.from_unit(rng.random((SAMPLES, problem.dim)))
    gradients = problem.evaluate(points)[1]
    different = [pair for pair in combinations(range(problem.dim), 2) if not np.allclose(*gradients[:, pair].T)]
    order = [ordered for i, j in different for ordered in ((i, j), (j, i))]
    return order[int(rng.integers(len(order)))] if order else (0, 0)


def run(problem_name: str, case: str, method: str, seed: int, mode: Mode) -> dict[str, Any]:
    """One run, up to the alarm: where that was, what it named, and how many probes were asked for.

    "l-bfgs without design" is the method from its first point on; others share the initial design of 3d points, and so
    the probes that follow it.
    """
    problem, begin = problems.get(problem_name), time.perf_counter()
    rng = np.random.default_rng([seed, problem.dim])
    i, j = coordinates(problem, rng)
    answer = answers(problem, case, seed)
    name, _, without_design = method.partition(" without ")
    options = {"n_init": 0} if without_design else None
    optimizer = Optimizer(problem.bounds, method=name, seed=seed, maximize=True, options=options, check_gradients=mode)
    told, text = 0, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GradientWarning)
        while told < max(4, 5 * problem.dim) and text is None:
            x = optimizer.ask()
            value, gradient, variance = answer(x)
            optimizer.tell(x, value, gradient, y_var=variance)
            told += 1
            text = next((str(warning.message) for warning in caught if warning.category is GradientWarning), None)
    study = handle(optimizer)
    asked = sum(len(event.x) for event in study.log if isinstance(event, Ask))
    return {
        "problem": problem_name,
        "case": case,
        "method": method,
        "seed": seed,
        "mode": mode,
        "alarm": text is not None,
        "evaluations": told,
        "probes": asked - study.state.asked,
        "named": text is not None and expected(case, i, j, problem.dim) in text,
        "message": text,
        "seconds": round(time.perf_counter() - begin, 3),
    }


def expected(case: str, i: int, j: int, dim: int) -> str:
    """What a warning that names the fault contains; with one coordinate, all of them are that one."""
    first, second = sorted((i, j))
    one = f"the partial derivative by coordinate {i} seems"
    whole = one if dim == 1 else "the gradient seems"
    return {
        "sign of one": f"{one} to have the wrong sign",
        "sign of all": f"{whole} to have the wrong sign",
        "one doubled": f"{one} to be too large by a factor of about 2",
        "all doubled": f"{whole} to be too large by a factor of about 2",
        "two swapped": f"by coordinate {first} and by coordinate {second} seem to be swapped",
    }.get(case, "a fault")


def missing(arguments: argparse.Namespace, done: Iterable[dict[str, Any]]) -> list[tuple[str, str, str, int, Mode]]:
    """The runs that are wanted and not in the file."""
    known = {tuple(record[key] for key in ("problem", "case", "method", "seed", "mode")) for record in done}
    wanted = product(arguments.methods, arguments.problems, arguments.cases, range(*arguments.seeds))
    jobs = [(problem, case, method, seed, arguments.mode) for method, problem, case, seed in wanted]
    # With one coordinate there is nothing to swap.
    possible = {name: problems.get(name).dim > 1 for name in arguments.problems}
    return [job for job in jobs if job not in known and (possible[job[0]] or job[1] != "two swapped")]


def tables(records: list[dict[str, Any]]) -> str:
    """For each method and mode: alarms of all runs, a row a problem and a column a case, then the totals."""
    lines = []
    for method, mode in sorted({(record["method"], record["mode"]) for record in records}):
        own = [record for record in records if (record["method"], record["mode"]) == (method, mode)]
        cases = [case for case in (*FAULTS, *HARMLESS) if any(record["case"] == case for record in own)]
        lines += [f"\n{method}, {mode}: alarms of runs", " | ".join(["problem", *cases, "probes"])]
        cells: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for record in own:
            cells[record["problem"], record["case"]].append(record)
            cells["all", record["case"]].append(record)
        for problem in [*dict.fromkeys(record["problem"] for record in own), "all"]:
            row = [cells[problem, case] for case in cases]
            alarms = [f"{sum(r['alarm'] for r in cell)}/{len(cell)}" if cell else "-" for cell in row]
            clean = cells[problem, "correct"]
            probes = f"{np.mean([record['probes'] for record in clean]):.2f}" if clean else "-"
            lines.append(" | ".join([problem, *alarms, probes]))
        for case in (case for case in cases if case in FAULTS):
            found = [record for record in cells["all", case] if record["alarm"]]
            named = sum(record["named"] for record in found)
            alone = sum(record["named"] and ", or " not in record["message"] for record in found)
            lines.append(f"{case}: found {len(found)}/{len(cells['all', case])}, named {named}, named alone {alone}")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, then print the tables of all that the file has."""
    # Policies are noisy: the check is not for them.
    small = [n for n in problems.names() if problems.get(n).dim <= LARGEST_DIM and not n.startswith("acrobot")]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=["sobol", "l-bfgs"])
    parser.add_argument("--seeds", nargs=2, type=int, default=(100, 120), metavar=("FIRST", "END"))
    parser.add_argument("--problems", nargs="+", default=[*small, *LARGER])
    parser.add_argument("--cases", nargs="+", default=[*FAULTS, *HARMLESS], choices=[*FAULTS, *HARMLESS])
    parser.add_argument("--mode", default="probe", choices=["probe", "passive"])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/gradient_check.jsonl"))
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    records = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    jobs = missing(arguments, records)
    print(f"{len(records)} runs in {arguments.out}, {len(jobs)} to do", flush=True)
    with ProcessPoolExecutor(arguments.workers) as pool, arguments.out.open("a") as out:
        for number, record in enumerate(pool.map(run, *zip(*jobs, strict=True)) if jobs else (), start=1):
            records.append(record)
            print(json.dumps(record), file=out, flush=True)
            wrong = record["alarm"] != (record["case"] in FAULTS)
            if wrong or number % 100 == 0:
                print(f"{number}/{len(jobs)} {'WRONG ' if wrong else ''}{json.dumps(record)}", flush=True)
    print(tables(records))


if __name__ == "__main__":
    main()
