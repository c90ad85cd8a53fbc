"""Does an acquisition rank points the same when all coordinates are turned round?

    python -m eign_lab.studies.mirrored_acquisition [--designs 10]

The same data twice, as they are and mirrored (x -> 1 - x, gradients with the other sign). An acquisition that means
something gives a point and its mirror image the same rank.
"""

import argparse

import numpy as np
from scipy.stats import spearmanr

import eign
from eign.arrays import Array

DATA = {"shekel-4": 30, "hartmann-6": 40}
METHODS = {
    "ei": {},
    "ei-gn": {"alpha": 0.6},
    "ei-g-bound": {"alpha": 0.6, "samples": 256},
    "ei-g": {"alpha": 0.6},
}
CANDIDATES = 2048


def score_both(problem: eign.problems.Problem, count: int, method: str, seed: int) -> list[Array]:
    """The acquisition at random points from the data of one design, and at their images from the mirrored data."""
    cube = [(0.0, 1.0)] * problem.dim
    points = eign.Optimizer(cube, method="sobol", seed=seed).ask(count)
    x = problem.bounds.from_unit(points)
    y, grad = problem.evaluate(x)
    grad = grad * problem.bounds.unit_scale(x)
    candidates = np.random.default_rng(seed).random((CANDIDATES, problem.dim))
    options = {"n_init": count, "restarts": 20, "raw_samples": 1024, **METHODS[method]}
    scores = []
    for mirrored in (False, True):
        optimizer = eign.Optimizer(
            cube, method=method, seed=seed, maximize=True, check_gradients=False, options=options
        )
        optimizer.tell(1.0 - points if mirrored else points, y, -grad if mirrored else grad)
        found = optimizer.outlook().acquisition(1.0 - candidates if mirrored else candidates)
        assert found is not None, f"{method} has an acquisition"
        scores.append(found)
    return scores


def main() -> None:
    """Print a line for each problem and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=10)
    designs = parser.parse_args().designs
    for name, count in DATA.items():
        problem = eign.problems.get(name)
        for method in METHODS:
            pairs = [score_both(problem, count, method, seed) for seed in range(designs)]
            ranks = [float(spearmanr(first, second).statistic) for first, second in pairs]
            same = sum(first.argmax() == second.argmax() for first, second in pairs)
            print(
                f"{name}  {method}: rank correlation {np.median(ranks):.3f} (least {min(ranks):.3f}), "
                f"best of {CANDIDATES} points the same in {same} of {designs}",
                flush=True,
            )


if __name__ == "__main__":
    main()
