"""Cholesky factors of batches of covariances in torch, differentiable, by the jitter policy of `cholesky`."""

import torch
from torch import Tensor

from eign.numerics.cholesky import JITTERS, UNIT_ROUNDOFF, FactorizationError, no_factor


def cholesky(covariance: Tensor, *, scale: Tensor | None = None, first: float = 0.0) -> tuple[Tensor, Tensor]:
    """Lower factors of `... x n x n`, and the covariances that they are the factors of: with jitter where it took some.

    Args:
        covariance: Symmetric and, up to rounding, positive definite.
        scale: What jitter and rounding errors are relative to, broadcast to `... x n`; None is the diagonal.
        first: The jitter to begin with.

    Raises:
        FactorizationError: If the largest jitter does not help.
    """
    diagonal = covariance.diagonal(dim1=-2, dim2=-1).detach()
    scale = (diagonal if scale is None else scale.detach()).expand(diagonal.shape)
    lifted = covariance + torch.diag_embed(first * scale) if first else covariance
    lower, info = torch.linalg.cholesky_ex(lifted)
    failed = (info > 0) | ~_are_sound(lower, scale)
    for jitter in (jitter for jitter in JITTERS if jitter > first):
        if not failed.any():
            break
        lift = torch.where(failed[..., None], jitter * scale, 0.0)
        lifted = torch.where(failed[..., None, None], covariance + torch.diag_embed(lift), lifted)
        lower, info = torch.linalg.cholesky_ex(lifted)
        failed = (info > 0) | ~_are_sound(lower, scale)
    if failed.any():
        raise FactorizationError(no_factor(covariance.shape[-1]))
    return lower, lifted


def _are_sound(lower: Tensor, scale: Tensor) -> Tensor:
    """`are_sound` of the module `cholesky`, for lower factors `... x n x n`."""
    pivots = lower.detach().diagonal(dim1=-2, dim2=-1)
    # NaN is not larger than anything.
    return (pivots.square() > pivots.shape[-1] * UNIT_ROUNDOFF * scale).all(dim=-1) & pivots.isfinite().all(dim=-1)
