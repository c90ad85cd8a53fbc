"""The closed forms of the derivative kernels against automatic differentiation of the plain kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eign.models.derivative_kernels import (
    KERNELS,
    Array,
    Term,
    covariance_blocks,
    covariance_blocks_vjp,
    default_terms,
    prior_variances,
    profile_derivatives,
    with_hyperparameters,
)
from example_counts import examples

# Entries reach 1e2 (phi'' / l^4 at l = 0.3) and are sums of a few products: a few hundred roundings.
TOLERANCE = 1e-10


def plain_kernel(terms: tuple[Term, ...], x: Tensor, z: Tensor) -> Tensor:
    """k(x, z) for one pair, written from the textbook definition in r."""

    def profile(name: str, r2: Tensor) -> Tensor:
        if name == "rbf":
            return torch.exp(-0.5 * r2)
        r = r2.sqrt()
        return (1 + math.sqrt(5) * r + 5 * r2 / 3) * torch.exp(-math.sqrt(5) * r)

    total = torch.zeros((), dtype=torch.float64)
    for term in terms:
        squared = ((x - z) / torch.from_numpy(term.lengthscale)) ** 2
        if term.structure == "full":
            total = total + term.outputscale * profile(term.profile, squared.sum())
        else:
            total = total + term.outputscale * profile(term.profile, squared).mean()
    return total


def blocks_by_autograd(terms: tuple[Term, ...], x: Tensor, z: Tensor) -> Tensor:
    """Covariance of (f, grad f)(x) with (f, grad f)(z), differentiable in x."""
    x, z = (p if p.requires_grad else p.clone().requires_grad_() for p in (x, z))
    value = plain_kernel(terms, x, z)
    by_x, by_z = torch.autograd.grad(value, (x, z), create_graph=True)
    by_both = torch.stack([torch.autograd.grad(slope, z, create_graph=True)[0] for slope in by_x])
    return torch.cat([torch.cat([value[None], by_z])[None], torch.cat([by_x[:, None], by_both], dim=1)])


@st.composite
def kernels_and_points(draw: st.DrawFn) -> tuple[tuple[Term, ...], Array]:
    d = draw(st.integers(1, 4))
    terms = default_terms(draw(st.sampled_from(KERNELS)), d)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengthscales = rng.uniform(0.3, 2.0, (len(terms), d))
    terms = with_hyperparameters(terms, lengthscales, rng.uniform(0.2, 3.0, len(terms)))
    # Coordinates differ by 0.1 or more: automatic differentiation through sqrt loses digits like 1 / delta^5.
    points = np.concatenate([rng.uniform(0.0, 0.45, (2, d)), rng.uniform(0.55, 1.0, (2, d))])
    mirrored = rng.random(d) < 0.5
    points[:, mirrored] = 1.0 - points[:, mirrored]
    return terms, points


@given(kernels_and_points())
@examples(60)
def test_blocks_are_the_derivatives_of_the_plain_kernel(case: tuple[tuple[Term, ...], Array]) -> None:
    terms, points = case
    delta = (points[:2, None] - points[None, 2:]).transpose(2, 0, 1)
    blocks = covariance_blocks(terms, delta, left=True, right=True)
    for a in range(2):
        for b in range(2):
            expected = blocks_by_autograd(terms, torch.from_numpy(points[a]), torch.from_numpy(points[2 + b]))
            expected = expected.detach().numpy()
            np.testing.assert_allclose(blocks[:, :, a, b], expected, rtol=TOLERANCE, atol=TOLERANCE)


@given(kernels_and_points(), st.booleans(), st.booleans())
@examples(40)
def test_parts_are_slices_of_the_whole(case: tuple[tuple[Term, ...], Array], left: bool, right: bool) -> None:
    terms, points = case
    delta = (points[:2, None] - points[None, 2:]).transpose(2, 0, 1)
    whole = covariance_blocks(terms, delta, left=True, right=True)
    part = covariance_blocks(terms, delta, left=left, right=right)
    d = points.shape[1]
    np.testing.assert_array_equal(part, whole[: 1 + d * left, : 1 + d * right])


@given(kernels_and_points(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
@examples(40)
def test_vjp_is_the_derivative_of_the_blocks(
    case: tuple[tuple[Term, ...], Array], left: bool, right: bool, seed: int
) -> None:
    terms, points = case
    d = points.shape[1]
    shape = (1 + d * left, 1 + d * right)
    cotangent = np.random.default_rng(seed).normal(size=shape)
    x, z = torch.from_numpy(points[0]).requires_grad_(), torch.from_numpy(points[2])
    blocks = blocks_by_autograd(terms, x, z)[: shape[0], : shape[1]]
    (expected,) = torch.autograd.grad((blocks * torch.from_numpy(cotangent)).sum(), x)
    delta = (points[0] - points[2])[:, None]
    gradient = covariance_blocks_vjp(terms, delta, cotangent[..., None])[:, 0]
    # Third derivatives reach 1e3 and automatic differentiation divides by delta up to five times.
    np.testing.assert_allclose(gradient, expected.numpy(), rtol=1e-8, atol=1e-8)


@given(kernels_and_points())
@examples(30)
def test_prior_variances_are_the_diagonal_at_a_point(case: tuple[tuple[Term, ...], Array]) -> None:
    terms, points = case
    delta = np.zeros((points.shape[1], 1))
    blocks = covariance_blocks(terms, delta, left=True, right=True)[..., 0]
    np.testing.assert_allclose(np.diag(blocks), prior_variances(terms), rtol=1e-14)
    np.testing.assert_array_equal(blocks, np.diag(np.diag(blocks)))


@given(kernels_and_points())
@examples(30)
def test_vjp_at_coincident_points_is_finite(case: tuple[tuple[Term, ...], Array]) -> None:
    terms, points = case
    d = points.shape[1]
    gradient = covariance_blocks_vjp(terms, np.zeros((d, 1)), np.ones((d + 1, d + 1, 1)))
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("profile", ["matern52", "rbf"])
def test_profile_derivatives_chain(profile: str) -> None:
    s = np.linspace(0.05, 8.0, 60)
    h = 1e-5
    derivatives = profile_derivatives(profile, 2 * s, order=3)  # type: ignore[arg-type]
    ahead = profile_derivatives(profile, 2 * (s + h), order=3)  # type: ignore[arg-type]
    behind = profile_derivatives(profile, 2 * (s - h), order=3)  # type: ignore[arg-type]
    for k in range(3):
        np.testing.assert_allclose((ahead[k] - behind[k]) / (2 * h), derivatives[k + 1], rtol=1e-5, atol=1e-7)
