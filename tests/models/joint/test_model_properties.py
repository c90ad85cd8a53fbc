"""Properties of the joint model that hold whatever was observed."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eign.models.derivative_kernels import KERNELS
from eign.models.joint.model import JointGradientGP
from example_counts import examples
from joint_cases import random_points, smooth

Case = tuple[str, Tensor, Tensor, Tensor]


@st.composite
def observations(draw: st.DrawFn) -> Case:
    """A kernel, and up to eight points with any pattern of missing values and derivatives."""
    d, n = draw(st.integers(1, 3)), draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.sampled_from([0.0, 0.3, 0.7]))
    x = torch.from_numpy(rng.random((n, d))).requires_grad_()
    y = smooth(x) * 10.0 ** draw(st.integers(-3, 3))
    (g,) = torch.autograd.grad(y.sum(), x)
    numbers = torch.cat([y.detach()[:, None], g], dim=1)
    numbers[torch.from_numpy(rng.random(numbers.shape) < share)] = torch.nan
    x = x.detach()
    return draw(st.sampled_from(KERNELS)), x, numbers[:, :1], numbers[:, 1:]


@given(observations(), st.integers(0, 7))
@examples(60)
def test_append_equals_a_fresh_factorisation(case: Case, start: int) -> None:
    kernel, x, y, g = case
    whole = JointGradientGP(x, y, g, kernel=kernel)
    part = JointGradientGP(x[:start], y[:start], g[:start], kernel=kernel, standardization=whole.standardization)
    points, scale = random_points(4, x.shape[1]), whole.standardization.y_scale
    part.moments(points)  # factors, so that there is something to extend
    grown = part.append(x[start:], y[start:], g[start:])
    actual, expected = grown.joint_moments(points), whole.joint_moments(points)
    torch.testing.assert_close(actual.mean / scale, expected.mean / scale, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(actual.covariance / scale**2, expected.covariance / scale**2, rtol=1e-8, atol=1e-8)


@given(observations())
@examples(40)
def test_the_order_of_observations_does_not_matter(case: Case) -> None:
    kernel, x, y, g = case
    points, units = random_points(4, x.shape[1]), JointGradientGP(x, y, g, kernel=kernel).standardization
    forward = JointGradientGP(x, y, g, kernel=kernel, standardization=units).joint_moments(points)
    backward = JointGradientGP(x.flip(0), y.flip(0), g.flip(0), kernel=kernel, standardization=units)
    mean, covariance = backward.joint_moments(points)
    torch.testing.assert_close(mean / units.y_scale, forward.mean / units.y_scale, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(covariance, forward.covariance, rtol=1e-8, atol=1e-8 * units.y_scale**2)


@given(observations())
@examples(40)
def test_mirroring_a_coordinate_mirrors_its_derivative(case: Case) -> None:
    kernel, x, y, g = case
    sign = torch.ones(x.shape[1] + 1, dtype=torch.float64)
    sign[1] = -1.0
    points = random_points(4, x.shape[1])
    mirrored_points, mirrored = points.clone(), x.clone()
    mirrored_points[:, 0], mirrored[:, 0] = 1.0 - points[:, 0], 1.0 - x[:, 0]
    plain = JointGradientGP(x, y, g, kernel=kernel)
    other = JointGradientGP(mirrored, y, g * sign[1:], kernel=kernel)
    scale = plain.standardization.y_scale
    expected, actual = plain.joint_moments(points), other.joint_moments(mirrored_points)
    torch.testing.assert_close(actual.mean * sign / scale, expected.mean / scale, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(
        actual.covariance * sign[:, None] * sign / scale**2, expected.covariance / scale**2, rtol=1e-8, atol=1e-8
    )


@given(observations())
@examples(40)
def test_an_observation_never_adds_variance(case: Case) -> None:
    kernel, x, y, g = case
    points = random_points(4, x.shape[1])
    whole = JointGradientGP(x, y, g, kernel=kernel)
    part = JointGradientGP(x[:-1], y[:-1], g[:-1], kernel=kernel, standardization=whole.standardization)
    more, less = (gp.joint_moments(points).covariance / whole.standardization.y_scale**2 for gp in (part, whole))
    # The difference of the covariances is positive semidefinite, up to rounding.
    assert torch.linalg.eigvalsh(more - less).min() > -1e-9


@given(observations())
@examples(40)
def test_both_paths_agree(case: Case) -> None:
    kernel, x, y, g = case
    gp = JointGradientGP(x, y, g, kernel=kernel)
    points, scale = random_points(4, x.shape[1]), gp.standardization.y_scale
    mean, variance = gp.moments(points)
    posterior, joint = gp.posterior(points), gp.joint_posterior(points)
    torch.testing.assert_close(posterior.mean[:, 0] / scale, mean / scale, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(posterior.variance[:, 0] / scale**2, variance / scale**2, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(joint.mean[:, 0] / scale, mean / scale, rtol=1e-10, atol=1e-10)
    gradient = gp.moments_and_gradients(points).mean_gradient
    torch.testing.assert_close(joint.mean[:, 1:] / scale, gradient / scale, rtol=1e-9, atol=1e-9)
