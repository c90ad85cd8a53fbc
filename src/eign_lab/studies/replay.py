"""Do two commits propose the same points? Every method on a handful of studies, compared bit for bit.

    python -m eign_lab.studies.replay BEFORE [AFTER]        commits; AFTER is the work tree unless given
    python -m eign_lab.studies.replay --record FILE         points of the eign that is imported here

Only public names are used, so that one script drives both. Bits depend on processor and versions: compare on one
machine, in one environment. Differences are shown with the first evaluation at which two studies part.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[3]
Answer = Callable[[np.ndarray, int], tuple[Any, Any]]
SEEDS = (0, 1)


def _plain(name: str, *arguments: Any) -> tuple[Any, Answer]:
    import eign

    problem = eign.problems.get(name, *arguments)

    def answer(x: np.ndarray, _: int) -> tuple[Any, Any]:
        value, gradient = problem(x)
        return value, gradient

    return problem.bounds, answer


def _partial() -> tuple[Any, Answer]:
    """Every third gradient is missing, every fifth in part, every seventh evaluation fails."""
    bounds, exact = _plain("hartmann-6")

    def answer(x: np.ndarray, number: int) -> tuple[Any, Any]:
        value, gradient = exact(x, number)
        gradient = np.array(gradient)
        if number % 5 == 4:
            gradient[1] = np.nan
        if number % 7 == 6:
            return None, None
        return value, None if number % 3 == 2 else gradient

    return bounds, answer


def _noisy() -> tuple[Any, Answer]:
    bounds, exact = _plain("branin")

    def answer(x: np.ndarray, number: int) -> tuple[Any, Any]:
        rng = np.random.default_rng([7, number])
        value, gradient = exact(x, number)
        return value + rng.normal(), np.array(gradient) + rng.normal(size=len(x))

    return bounds, answer


def _decades() -> tuple[Any, Answer]:
    """A log scale, a positive coordinate over four decades, a fixed one and a plain one."""
    import eign

    centre = np.array([-2.0, 1.0, 0.0, 0.3])

    def answer(x: np.ndarray, _: int) -> tuple[Any, Any]:
        u = np.array([np.log10(x[0]), np.log10(x[1]), 0.0, x[3]]) - centre
        slope = np.array([1 / (x[0] * np.log(10)), 1 / (x[1] * np.log(10)), 0.0, 1.0])
        return -float(u @ u), -2.0 * u * slope

    return eign.Box([(1e-4, 1.0), (1e-2, 1e2), (3.0, 3.0), (-1.0, 1.0)], log=[0]), answer


STUDIES: dict[str, tuple[Callable[[], tuple[Any, Answer]], int, int]] = {
    "shekel-4": (lambda: _plain("shekel-4"), 40, 1),
    "hartmann-6": (lambda: _plain("hartmann-6"), 40, 1),
    "rosenbrock-3, three at once": (lambda: _plain("rosenbrock", 3), 30, 3),
    "hartmann-6, parts missing": (_partial, 36, 1),
    "branin, noisy": (_noisy, 24, 1),
    "decades": (_decades, 24, 2),
}
"""The function, its evaluations and how many points are asked at once."""


def record(job: tuple[str, str, int]) -> tuple[str, list[list[str]]]:
    """One study: each point as hexadecimal numbers, and why it was proposed."""
    import warnings

    import eign

    study, method, seed = job
    make, budget, batch = STUDIES[study]
    bounds, answer = make()
    warnings.simplefilter("ignore")
    opt = eign.Optimizer(bounds, method=method, seed=seed, maximize=True)
    points = []
    while len(opt.history) < budget:
        for x in opt.ask(batch):
            value, gradient = answer(x, len(opt.history))
            opt.tell(x, value, gradient)
            points.append([float(each).hex() for each in x])
    best = opt.best
    points.append([float(each).hex() for each in (*best.x, best.y)])
    return f"{study} | {method} | seed {seed}", points


def record_all(file: Path) -> None:
    """Points of every method on every study, to a JSON file."""
    import eign

    jobs = [(study, method, seed) for method in eign.methods() for study in STUDIES for seed in SEEDS]
    with ProcessPoolExecutor(2) as pool:
        found = dict(pool.map(record, jobs))
    file.write_text(json.dumps({"eign": str(Path(eign.__file__).parent), "studies": found}))


def record_commit(commit: str | None, file: Path, place: Path) -> dict[str, list[list[str]]]:
    """The same in a process of its own, with the sources of a commit; None is the work tree."""
    source = ROOT
    if commit is not None:
        source = place / "tree"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", "--quiet", source, commit], check=True)
    try:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = {**os.environ, **threads, "PYTHONPATH": str(source / "src")}
        # By its path: the other commit has no such module, or another one.
        subprocess.run([sys.executable, __file__, "--record", file], check=True, env=environment)
    finally:
        if commit is not None:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", source], check=True)
    recorded = json.loads(file.read_text())
    assert Path(recorded["eign"]).is_relative_to(source), f"{recorded['eign']} is not of {source}"
    return dict(recorded["studies"])


def differences(before: dict[str, list[list[str]]], after: dict[str, list[list[str]]]) -> Iterator[str]:
    """A line for each study that is not the same."""
    for name in sorted(before.keys() | after.keys()):
        first, second = before.get(name, []), after.get(name, [])
        if first == second:
            continue
        pairs = zip(first, second, strict=False)
        part = next((i for i, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))
        if part >= min(len(first), len(second)):
            yield f"{name}: {len(first)} and {len(second)} points"
            continue
        one, other = (np.array([float.fromhex(each) for each in found[part]]) for found in (first, second))
        yield f"{name}: from evaluation {part + 1} of {len(first) - 1} on, by {np.abs(one - other).max():.1e}"


def main() -> None:
    """Record, or compare two commits; the exit code says whether they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", metavar="COMMIT")
    parser.add_argument("--record", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.record:
        record_all(arguments.record)
        return
    if not 1 <= len(arguments.commits) <= 2:
        parser.error("give one commit or two")
    first = arguments.commits[0]
    second = arguments.commits[1] if len(arguments.commits) > 1 else None
    with tempfile.TemporaryDirectory() as place:
        before = record_commit(first, Path(place) / "before.json", Path(place))
        after = record_commit(second, Path(place) / "after.json", Path(place))
    lines = list(differences(before, after))
    print("\n".join([*lines, f"{len(before) - len(lines)} of {len(before)} studies are the same bit for bit"]))
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
