"""A few seconds in the terminal that show what the formulas do."""

import math
import time

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from eign import formulas

DRAWS = 1 << 20
ALPHA = 0.6


INTRODUCTION = """
[bold]eign[/bold] measures improvement in g = f - alpha |grad f|²: a point is promising
when it may be high, or nearly stationary. The paper calls the expected
improvement of g intractable and replaces it twice. Here it is exact:
"""
AFTER_EXACT = f"""
The expected improvement of g, for a joint Gaussian of f and its gradient.
Monte Carlo draws {DRAWS:,} samples; the difference is in its standard errors.
"""
AFTER_MIRRORED = """
A mirrored coordinate is the same problem. The paper's closed form sees
another one; the exact terms do not.

The optimizer is still to come. The mathematics is here: [bold]eign.formulas[/bold],
and what it costs: [bold]eign speed --formulas[/bold]
"""


def show_demo() -> None:
    """Exact EI_g against Monte Carlo, and the lack of symmetry of the paper's tractable term."""
    console = Console(highlight=False)
    console.print(INTRODUCTION)
    console.print(_exact_against_monte_carlo())
    console.print(AFTER_EXACT)
    console.print(_mirrored())
    console.print(AFTER_MIRRORED)


def _exact_against_monte_carlo() -> Table:
    table = Table(title="EI_g exactly", title_justify="left")
    for heading in ("d", "exact", "time", "Monte Carlo", "time", "difference"):
        table.add_column(heading, justify="right")
    for d in (2, 6, 14, 50):
        mean, covariance, best_g = _joint_posterior(d)
        _exact(mean, covariance, best_g)  # the first call of all loads libraries
        start = time.perf_counter()
        exact = _exact(mean, covariance, best_g)
        exact_time = time.perf_counter() - start
        start = time.perf_counter()
        estimate, error = _monte_carlo(mean, covariance, best_g)
        sampling_time = time.perf_counter() - start
        table.add_row(
            str(d),
            f"{exact:.9f}",
            f"{1e3 * exact_time:.1f} ms",
            f"{estimate:.4f} ± {error:.4f}",
            f"{1e3 * sampling_time:.0f} ms",
            f"{(exact - estimate) / error:+.1f}",
        )
    return table


def _exact(mean: Tensor, covariance: Tensor, best_g: float) -> float:
    value = formulas.auxiliary_improvement_full(
        mean[0], covariance[0, 0].sqrt(), mean[1:], covariance[1:, 1:], best_g, ALPHA, cross_cov=covariance[0, 1:]
    )
    return float(value)


def _joint_posterior(d: int) -> tuple[Tensor, Tensor, float]:
    """Mean and covariance of (f, grad f) at a point, and the incumbent's g, of a typical size."""
    generator = torch.Generator().manual_seed(d)
    mean = torch.randn(d + 1, generator=generator, dtype=torch.float64)
    factor = torch.randn(d + 1, d + 1, generator=generator, dtype=torch.float64) / math.sqrt(d + 1)
    covariance = factor @ factor.mT + 0.05 * torch.eye(d + 1, dtype=torch.float64)
    typical_g = mean[0] - ALPHA * (mean[1:].square().sum() + covariance.diagonal()[1:].sum())
    return mean, covariance, float(typical_g)


def _monte_carlo(mean: Tensor, covariance: Tensor, best_g: float) -> tuple[float, float]:
    """Plain Monte Carlo in blocks, with its standard error."""
    generator = torch.Generator().manual_seed(0)
    chol = torch.linalg.cholesky(covariance)
    blocks = []
    for _ in range(16):
        white = torch.randn(DRAWS // 16, len(mean), generator=generator, dtype=torch.float64)
        sample = mean + white @ chol.mT
        g = formulas.auxiliary_objective(sample[:, 0], sample[:, 1:], ALPHA)
        blocks.append((g - best_g).clamp(min=0))
    gain = torch.cat(blocks)
    return float(gain.mean()), float(gain.std() / math.sqrt(DRAWS))


def _mirrored() -> Table:
    grad_mean, grad_sigma, best_grad = torch.tensor(
        [[1.2, -0.4, 0.6], [0.5, 0.3, 0.4], [0.1, 0.2, 1.1]], dtype=torch.float64
    )
    table = Table(title="One coordinate mirrored, x_1 -> 1 - x_1", title_justify="left")
    for heading in ("stationarity term", "as given", "mirrored"):
        table.add_column(heading, justify="left" if heading.startswith("stat") else "right")
    mirror = torch.tensor([-1.0, 1.0, 1.0], dtype=torch.float64)
    for name, term in (
        ("EI_s-bar, the paper's closed form", formulas.orthant_gradient_increase),
        ("EI_s, exact", formulas.gradient_increase),
    ):
        as_given = term(grad_mean, grad_sigma, best_grad)
        mirrored = term(mirror * grad_mean, grad_sigma, mirror * best_grad)
        table.add_row(name, f"{as_given:.6f}", f"{mirrored:.6f}")
    return table
