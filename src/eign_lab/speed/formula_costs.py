"""What each acquisition formula costs per point, with and without its gradient, on this machine."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from eign import formulas

POINTS = 1024  # the raw candidates of one step of the paper's search
SAMPLES = 256  # base samples of the Monte Carlo forms

Formula = Callable[["SampleMoments"], Tensor]


@dataclass(frozen=True)
class SampleMoments:
    """Posterior moments of f and its gradient at POINTS points, all of order one."""

    mean: Tensor
    sigma: Tensor
    grad_mean: Tensor
    grad_sigma: Tensor
    grad_cov: Tensor
    cross_cov: Tensor
    best_grad: Tensor
    base_samples: Tensor

    @classmethod
    def draw(cls, d: int) -> "SampleMoments":
        """Random moments in d dimensions, the same for the same d; the joint covariance is positive definite."""
        generator = torch.Generator().manual_seed(d)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        factor = normal(POINTS, d + 1, d + 1) / (d + 1) ** 0.5
        joint = factor @ factor.mT + 0.1 * torch.eye(d + 1, dtype=torch.float64)
        return cls(
            mean=normal(POINTS),
            sigma=joint[:, 0, 0].sqrt(),
            grad_mean=normal(POINTS, d),
            grad_sigma=joint[:, 1:, 1:].diagonal(dim1=-2, dim2=-1).sqrt(),
            grad_cov=joint[:, 1:, 1:].contiguous(),
            cross_cov=joint[:, 0, 1:].contiguous(),
            best_grad=normal(d),
            base_samples=formulas.normal_base_samples(SAMPLES, d, seed=0),
        )

    def with_gradients(self) -> "SampleMoments":
        """The same moments, of which a derivative will be asked."""
        names = ("mean", "sigma", "grad_mean", "grad_sigma", "grad_cov", "cross_cov")
        changed = {name: getattr(self, name).clone().requires_grad_() for name in names}
        return SampleMoments(**changed, best_grad=self.best_grad, base_samples=self.base_samples)


def _best_g(m: SampleMoments, alpha: float) -> float:
    return float(-alpha * m.best_grad.square().sum())


ALPHA = 0.6
FORMULAS: dict[str, Formula] = {
    "EI": lambda m: formulas.expected_improvement(m.mean, m.sigma, 0.0),
    "LogEI": lambda m: formulas.log_expected_improvement(m.mean, m.sigma, 0.0),
    "EI-GN": lambda m: formulas.ei_gn(m.mean, m.sigma, m.grad_mean, m.grad_sigma, 0.0, m.best_grad, ALPHA),
    "EI-GN, full covariance": lambda m: (
        formulas.expected_improvement(m.mean, m.sigma, 0.0)
        - ALPHA * formulas.orthant_gradient_increase_full(m.grad_mean, torch.linalg.cholesky(m.grad_cov), m.best_grad)
    ),
    "EI_g bound, Monte Carlo": lambda m: (
        formulas.expected_improvement(m.mean, m.sigma, 0.0)
        - ALPHA * formulas.gradient_increase_mc(m.grad_mean, m.grad_sigma, m.best_grad, m.base_samples)
    ),
    "EI_g bound, exact": lambda m: formulas.auxiliary_improvement_bound(
        m.mean, m.sigma, m.grad_mean, m.grad_sigma, 0.0, m.best_grad, ALPHA
    ),
    "EI_g, exact": lambda m: formulas.auxiliary_improvement(
        m.mean, m.sigma, m.grad_mean, m.grad_sigma, _best_g(m, ALPHA), ALPHA
    ),
    "EI_g, exact, joint covariance": lambda m: formulas.auxiliary_improvement_full(
        m.mean, m.sigma, m.grad_mean, m.grad_cov, _best_g(m, ALPHA), ALPHA, cross_cov=m.cross_cov
    ),
}


@dataclass(frozen=True)
class Cost:
    """Microseconds per point of one formula."""

    formula: str
    d: int
    value: float
    with_gradient: float


def measure_formula_costs(dims: tuple[int, ...] = (4, 14, 50), *, seconds: float = 0.3) -> list[Cost]:
    """Time every formula on one thread at POINTS points; the fastest of the repetitions that fit into `seconds`."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        costs = []
        for d in dims:
            plain = SampleMoments.draw(d)
            tracked = plain.with_gradients()
            for name, formula in FORMULAS.items():
                value = fastest(lambda f=formula, m=plain: f(m), seconds)  # type: ignore[misc]
                gradient = fastest(lambda f=formula, m=tracked: f(m).sum().backward(), seconds)  # type: ignore[misc]
                costs.append(Cost(name, d, 1e6 * value / POINTS, 1e6 * gradient / POINTS))
        return costs
    finally:
        torch.set_num_threads(threads)


def fastest(call: Callable[[], object], seconds: float) -> float:
    """Shortest duration of a call: other work on the machine only ever adds to it."""
    call()  # the first call loads libraries and fills caches
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now >= end:
            return best


def show_formula_costs() -> None:
    """Print the table, and the sentence that the documentation quotes."""
    costs = measure_formula_costs()
    dims = sorted({cost.d for cost in costs})
    by_key = {(cost.formula, cost.d): cost for cost in costs}
    table = Table(title=f"Microseconds per point, one thread, {POINTS} points at once: value / with gradient")
    table.add_column("formula")
    for d in dims:
        table.add_column(f"d = {d}", justify="right")
    for name in FORMULAS:
        cells = [by_key[name, d] for d in dims]
        table.add_row(name, *(f"{cell.value:.2f} / {cell.with_gradient:.2f}" for cell in cells))
    console = Console()
    console.print(table)
    for d in dims:
        exact, ours = by_key["EI_g, exact", d], by_key["EI-GN", d]
        console.print(
            f"d = {d}: exact EI_g costs {exact.value / ours.value:.1f} times EI-GN, "
            f"{exact.with_gradient / ours.with_gradient:.1f} times with its gradient"
        )
