r"""Acquisition values that look at f alone.

| symbol | in code | meaning |
|---|---|---|
| :math:`\mu, \sigma` | `mean`, `sigma` | posterior of f at x, standard deviation |
| :math:`f^+` | `best` | value of the incumbent |
| :math:`u` | `u` | standardised improvement, :math:`(\mu - f^+)/\sigma` |

All functions broadcast and maximise.
"""

import torch
from torch import Tensor

from eign.formulas.normal import normal_tail


def log_h(u: Tensor) -> Tensor:
    r"""Log of the improvement function of a standard normal.

    .. math:: \log\bigl(\varphi(u) + u\,\Phi(u)\bigr) = \log\Phi(u) + \log e(-u)

    with e the mean excess of :func:`eign.formulas.normal_tail`. The right-hand side has no cancellation, so it is
    accurate for u from -1e150 to 1e150.
    """
    log_probability, excess, _ = normal_tail(-u)
    return log_probability + excess.log()


def expected_improvement(mean: Tensor, sigma: Tensor, best: Tensor | float, *, xi: float = 0.0) -> Tensor:
    r"""EI_f: E[max(f - best - xi, 0)] for f ~ N(mean, sigma^2), the two terms of `eq: final_AF_1`.

    .. math:: (\mu - f^+ - \xi)\,\Phi(u) + \sigma\,\varphi(u), \qquad u = (\mu - f^+ - \xi)/\sigma

    Relative accuracy is kept deep in the tail; sigma = 0 gives max(mean - best - xi, 0). Shapes broadcast.
    """
    gain = mean - best - xi
    known = sigma <= 0
    u = gain / sigma.masked_fill(known, 1.0)
    log_probability, excess, _ = normal_tail(-u)
    return torch.where(known, gain.clamp(min=0), sigma * log_probability.exp() * excess)


def log_expected_improvement(mean: Tensor, sigma: Tensor, best: Tensor | float) -> Tensor:
    r"""Log of E[max(f - best, 0)] for f ~ N(mean, sigma^2).

    .. math:: \log\sigma + \log\bigl(\varphi(u) + u\,\Phi(u)\bigr), \qquad u = (\mu - f^+)/\sigma

    Finite, with a finite gradient, where EI itself has long underflowed to zero. sigma must be positive. Shapes
    broadcast.
    """
    return sigma.log() + log_h((mean - best) / sigma)


def probability_of_improvement(mean: Tensor, sigma: Tensor, best: Tensor | float) -> Tensor:
    r"""P(f > best) for f ~ N(mean, sigma^2).

    .. math:: \Phi\bigl((\mu - f^+)/\sigma\bigr)

    sigma must be positive. Shapes broadcast.
    """
    log_probability, _, _ = normal_tail((best - mean) / sigma)
    return log_probability.exp()


def upper_confidence_bound(mean: Tensor, sigma: Tensor, *, weight: float = 2.0) -> Tensor:
    r"""Upper confidence bound; the paper leaves its weight open and we take two standard deviations.

    .. math:: \mu + w\,\sigma
    """
    return mean + weight * sigma
