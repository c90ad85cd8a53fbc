"""The judge of `auto`: problems, rivals, budgets and bars, fixed before the method.

    python -m eign_lab.judge.command --methods rivals --seeds 0-19 100-119 --workers 2
    python -m eign_lab.judge.command --methods auto --seeds 100-104 --groups 1 2
    python -m eign_lab.judge.command --methods auto --options '{"kernel": "matern52"}' --label "no additive"
    python -m eign_lab.judge.command --score [--label "no additive"] [--score-seeds tuning]

Methods are tuned on the seeds 100 to 119 and reported on 0 to 19. Each run appends a line to results/auto/LABEL.jsonl
when it ends, and runs that are there are skipped, so that any call can be stopped and repeated.
"""

import argparse
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eign_lab.judge.cases import CASES, GROUPS
from eign_lab.judge.rivals import MODELS, PROGRAMS, RIVALS, perform
from eign_lab.runs.tasks import one_thread

RESULTS = Path(__file__).parents[3] / "results" / "auto"
_SETS = {"rivals": RIVALS, "cheap": tuple(PROGRAMS), "models": MODELS}


class Job(NamedTuple):
    """What identifies a run; the label names a method with its options."""

    problem: str
    method: str
    label: str
    options: str
    seed: int


def run(job: Job, seconds: float = np.inf) -> dict[str, Any]:
    """One run on one thread, as it is stored; regrets have five digits, far more than any score can see."""
    start = time.perf_counter()
    with one_thread():
        done = perform(CASES[job.problem], job.method, job.seed, json.loads(job.options), seconds=seconds)
    return {
        **job._asdict(),
        "options": json.loads(job.options),
        "budget": done.case.budget,
        "evaluations": done.evaluations,
        "cut": done.cut,
        "regrets": [(step, float(f"{regret:.5g}")) for step, regret in done.regrets],
        "median_wait": round(float(np.median(done.waits or [0.0])), 5),
        "max_wait": round(max(done.waits, default=0.0), 5),
        "seconds": round(time.perf_counter() - start, 3),
    }


def stored(directory: Path = RESULTS) -> Iterator[dict[str, Any]]:
    """All runs that have been stored; a line cut off by a crash is left out."""
    for file in sorted(directory.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            if line.endswith("}"):
                yield json.loads(line)


def identity(record: dict[str, Any]) -> Job:
    """The job of a stored run."""
    options = json.dumps(record["options"], sort_keys=True)
    return Job(record["problem"], record["method"], record["label"], options, record["seed"])


def work(jobs: Sequence[Job], *, workers: int, seconds: float = np.inf, directory: Path = RESULTS) -> None:
    """Run the jobs, store each as it ends, and say how long the rest will take."""
    directory.mkdir(parents=True, exist_ok=True)
    known = {identity(record) for record in stored(directory)}
    todo = [job for job in jobs if job not in known]
    print(f"{len(jobs)} runs, {len(jobs) - len(todo)} of them there already", flush=True)
    start = shown = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        futures = {pool.submit(run, job, seconds): job for job in todo}
        for count, future in enumerate(as_completed(futures), start=1):
            job = futures[future]
            try:
                store(future.result(), directory)
            except Exception as error:
                print(f"{job.label} on {job.problem}, seed {job.seed}: {type(error).__name__}: {error}", flush=True)
            now = time.monotonic()
            if now - shown > 10 or count == len(todo):
                shown, left = now, (now - start) * (len(todo) / count - 1)
                print(f"{count} of {len(todo)} runs, {now - start:.0f} s, about {left:.0f} s left", flush=True)


def store(record: dict[str, Any], directory: Path) -> None:
    """Append a run to the file of its label, on a line of its own even after one that a crash cut off."""
    file = directory / f"{record['label'].replace(' ', '-')}.jsonl"
    line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
    with file.open("ab+") as lines:
        if lines.tell():
            lines.seek(-1, os.SEEK_END)
            line = line if lines.read(1) == b"\n" else b"\n" + line
        lines.write(line)


def selected(arguments: argparse.Namespace) -> list[Job]:
    """The jobs that the command line asks for, one seed after the other, so that early stops leave whole seeds."""
    names = arguments.problems or [name for name, case in CASES.items() if case.group in arguments.groups]
    methods = [method for name in arguments.methods for method in _SETS.get(name, (name,))]
    if arguments.label and len(methods) > 1:
        raise SystemExit(f"--label names one method with its options, got {len(methods)} methods")
    options = json.dumps(json.loads(arguments.options), sort_keys=True)
    return [
        Job(problem, method, arguments.label or method, options, seed)
        for seed in seeds_of(arguments.seeds)
        for problem in names
        for method in methods
    ]


def seeds_of(words: Iterable[str]) -> list[int]:
    """Seeds from numbers and ranges: 3, 0-19."""
    seeds = []
    for word in words:
        first, _, last = word.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", "--method", nargs="+", default=["auto"], help="names, or: rivals, cheap, models")
    parser.add_argument("--options", default="{}", help="options of the method as JSON")
    parser.add_argument("--label", help="what results call the method with these options")
    parser.add_argument("--groups", nargs="+", type=int, default=list(GROUPS), choices=list(GROUPS))
    parser.add_argument("--problems", nargs="+", choices=list(CASES), metavar="NAME", help="instead of groups")
    parser.add_argument("--seeds", nargs="+", default=["100-119"], help="numbers and ranges, such as 0-19 100")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=np.inf, help="processor time after which a run is cut")
    parser.add_argument("--score", action="store_true", help="run nothing; print the tables and the bars")
    parser.add_argument("--score-seeds", choices=["report", "tuning"], default="report")
    arguments = parser.parse_args()
    if arguments.score:
        from eign_lab.judge.report_cards import report

        report(list(stored()), label=arguments.label or "auto", seeds=arguments.score_seeds, directory=RESULTS)
    else:
        work(selected(arguments), workers=arguments.workers, seconds=arguments.seconds)


if __name__ == "__main__":
    main()
