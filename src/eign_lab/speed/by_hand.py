"""What our own routines save over the library's, on this machine: python -m eign_lab.speed.by_hand.

For docs/dependencies.md. Both sides in one process, on one thread, best of several; pairs that have one answer
are checked to agree.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from scipy import optimize

from eign.numerics import cholesky, lbfgs
from eign.search.candidates import global_candidates


def seconds(work: Callable[[], object], repeats: int = 9) -> float:
    """The shortest of several runs."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def report(what: str, ours: Callable[[], object], library: Callable[[], object], peer: str) -> None:
    """Print a line with both times."""
    mine, other = seconds(ours), seconds(library)
    print(f"{what}: ours {mine * 1e3:.2f} ms, {peer} {other * 1e3:.2f} ms, {other / mine:.1f} times")


def compare_searches(count: int, dim: int) -> None:
    """So many independent minimisations in a box of an extended Rosenbrock function."""
    starts = np.random.default_rng(0).uniform(-1.5, 1.5, (count, dim))

    def values(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step, bend = 1.0 - x[:, :-1], x[:, 1:] - x[:, :-1] ** 2
        gradient = np.zeros_like(x)
        gradient[:, :-1] = -2.0 * step - 40.0 * bend * x[:, :-1]
        gradient[:, 1:] += 20.0 * bend
        return (step**2 + 10.0 * bend**2).sum(axis=1), gradient

    def ours() -> np.ndarray:
        low, high = np.full(dim, -2.0), np.full(dim, 2.0)
        stopping = lbfgs.Stopping(gradient=1e-6)
        return lbfgs.minimize(
            lambda x, _: lbfgs.ObjectiveValues(*values(x)), starts, lower=low, upper=high, stopping=stopping
        ).value

    def one(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = values(x[None])
        return float(value[0]), gradient[0]

    def library() -> np.ndarray:
        return np.array(
            [
                optimize.minimize(
                    one, x, jac=True, method="L-BFGS-B", bounds=[(-2.0, 2.0)] * dim, options={"gtol": 1e-6, "ftol": 0.0}
                ).fun
                for x in starts
            ]
        )

    np.testing.assert_allclose(np.sort(ours()), np.sort(library()), atol=5.0)  # local minima may differ
    report(f"{count} searches in {dim} dimensions", ours, library, "SciPy one by one")


def compare_factors(count: int, size: int) -> None:
    """Inverse Cholesky factors of several covariance matrices."""
    rng = np.random.default_rng(0)
    points = rng.random((count, size, 4))
    distance = ((points[:, :, None] - points[:, None]) ** 2).sum(axis=-1)
    matrices = np.exp(-2.0 * distance) + 1e-4 * np.eye(size)
    tensors, unit = torch.from_numpy(matrices), torch.eye(size, dtype=torch.float64)

    def library() -> torch.Tensor:
        return torch.as_tensor(torch.linalg.solve_triangular(torch.linalg.cholesky(tensors), unit, upper=False))

    np.testing.assert_allclose(cholesky.factorize(matrices).whitener, library().numpy(), rtol=1e-6, atol=1e-6)
    report(f"{count} inverse factors of {size} rows", lambda: cholesky.factorize(matrices), library, "torch batched")


def compare_candidates(count: int, dim: int) -> None:
    """Scrambled Sobol points: ours and torch's."""
    rng = np.random.default_rng(0)

    def library() -> torch.Tensor:
        seed = int(rng.integers(1 << 30))
        return torch.quasirandom.SobolEngine(dim, scramble=True, seed=seed).draw(count, dtype=torch.float64)

    global_candidates(count, dim, rng)
    report(f"{count} Sobol points in {dim} dimensions", lambda: global_candidates(count, dim, rng), library, "torch")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for searches, dim in ((7, 8), (64, 8), (512, 8)):
        compare_searches(searches, dim)
    for count, size in ((7, 50), (15, 200), (15, 500)):
        compare_factors(count, size)
    compare_candidates(1024, 10)
