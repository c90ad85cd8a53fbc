"""Whose search finds the larger LogEI, and where, on the same data and with the same model?

    python -m eign_lab.studies.search_beside_botorch [--designs 7]

Whole runs of `log-ei` leave Shekel's lesser peaks later than BoTorch's. So at every fifth suggestion of ours, from the
thirtieth evaluation on and until the best peak is found, BoTorch fits its model to the same data and searches, too,
with the paper's restarts and raw samples. Both suggestions are measured by BoTorch's LogEI.
"""

import argparse

import numpy as np
import torch

import eign
from eign.arrays import Array
from eign_lab.rivals.botorch_loop import acquisition_and_point

AT_INCUMBENT = 0.02
"""Largest difference of a coordinate, as a share of the box."""
EQUAL = 0.1
"""Nats of LogEI."""
SEARCH = {"restarts": 8, "raw_samples": 256}
FOUND = 10.0


def compared(design: int) -> list[tuple[float, float, float]]:
    """For each suggestion: LogEI of ours minus BoTorch's, and how far ours and BoTorch's are from the incumbent."""
    problem = eign.problems.get("shekel-4")
    box = problem.bounds
    optimizer = eign.Optimizer(
        box, method="log-ei", seed=design, maximize=True, check_gradients=False, options={"n_init": 12, **SEARCH}
    )
    rows = []
    for number in range(80):
        x = optimizer.ask()
        history = optimizer.history
        if number >= 30 and number % 5 == 0 and history.y.max() < FOUND:
            points, incumbent = box.to_unit(history.x), box.to_unit(history.x[history.y.argmax()])
            torch.manual_seed(1000 * design + number)
            target, theirs = acquisition_and_point(points, history.y, "log-ei", SEARCH)
            ours = box.to_unit(x)
            gap = _at(target, ours) - _at(target, theirs)
            rows.append((gap, float(np.abs(ours - incumbent).max()), float(np.abs(theirs - incumbent).max())))
        optimizer.tell(x, *problem(x))
    return rows


def _at(target: torch.nn.Module, u: Array) -> float:
    with torch.no_grad():
        return float(target(torch.tensor(u)[None]))


def main() -> None:
    """Print counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=7)
    rows = np.array([row for design in range(parser.parse_args().designs) for row in compared(design)])
    gap, ours, theirs = rows.T
    missed = (gap > EQUAL) & (ours < AT_INCUMBENT) & (theirs > AT_INCUMBENT)
    higher, lower = (gap > EQUAL).sum(), (gap < -EQUAL).sum()
    print(
        f"{len(rows)} suggestions: LogEI equal in {len(rows) - higher - lower}, ours higher in {higher}, "
        f"BoTorch's in {lower}\n"
        f"at the incumbent: ours {(ours < AT_INCUMBENT).sum()}, BoTorch's {(theirs < AT_INCUMBENT).sum()}\n"
        f"BoTorch's search missed a higher peak at the incumbent: {missed.sum()}, by {np.median(gap[missed]):.1f} nats "
        "in the median"
    )


if __name__ == "__main__":
    main()
