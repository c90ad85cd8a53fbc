"""The joint model at 14 dimensions and 500 points, 7,500 rows: seconds and peak memory of each step.

python -m eign_lab.speed.joint_large [--dim 14] [--points 500]
"""

import argparse
import resource
import time
from collections.abc import Callable

import torch

from eign.models import JointGradientGP
from eign_lab.speed.fits import samples


def timed(name: str, action: Callable[[], object]) -> object:
    """What the action returns; the time it took is printed."""
    start = time.perf_counter()
    result = action()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name:42} {time.perf_counter() - start:7.2f} s   peak {peak:.2f} GB", flush=True)
    return result


def main() -> None:
    """Fit, extend and search at one size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dim", type=int, default=14)
    parser.add_argument("--points", type=int, default=500)
    arguments = parser.parse_args()
    data = samples(arguments.dim, arguments.points + 1)
    model = JointGradientGP(*data.first(arguments.points))
    small = JointGradientGP(*data.first(40))
    timed("fit to 40 points", small.fit_hyperparameters)
    model = model.with_hyperparameters(small.hyperparameters)
    points = torch.rand(20, arguments.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = arguments.points * (arguments.dim + 1)
    timed(f"factor {rows} rows, posterior of 20 points", lambda: model.moments_and_gradients(points))
    timed("posterior of 20 points with gradient", lambda: model.moments_and_gradients(points))
    grown = model.append(*data.only(arguments.points))
    timed("one more observation, posterior", lambda: grown.moments_and_gradients(points))
    timed("refit, at most 3 evaluations a descent", lambda: grown.fit_hyperparameters(evaluations=3))


if __name__ == "__main__":
    main()
