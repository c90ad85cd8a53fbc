"""What breaks derivative Gaussian processes elsewhere: repeated points, constant functions, extreme lengthscales."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from eign.models import fit
from eign.models.derivative_kernels import KERNELS, default_terms, with_hyperparameters
from eign.models.joint.fitting import JointData, factor_rows, negative_log_posterior
from eign.models.joint.hyperparameters import LENGTHSCALE_BOUNDS, OUTPUTSCALE_BOUNDS, JointHyperparameters
from eign.models.joint.model import JointGradientGP
from eign.numerics.large_cholesky import factorize, nugget
from joint_cases import observe, random_points, smooth


def assert_sound(gp: JointGradientGP) -> None:
    """Fits without an exception, inside the bounds, and answers finitely near and far from the data."""
    gp.fit_hyperparameters(evaluations=15)
    slack = 1e-9
    for term in gp.hyperparameters.terms:
        assert (term.lengthscale >= LENGTHSCALE_BOUNDS[0] * (1 - slack)).all()
        assert (term.lengthscale <= LENGTHSCALE_BOUNDS[1] * (1 + slack)).all()
        assert OUTPUTSCALE_BOUNDS[0] * (1 - slack) <= term.outputscale <= OUTPUTSCALE_BOUNDS[1] * (1 + slack)
    seen = torch.tensor(gp.observations.x)
    points = torch.cat([seen[:5], seen[:5] + 1e-9, random_points(5, seen.shape[1])])
    moments, joint = gp.moments_and_gradients(points), gp.joint_moments(points)
    for tensor in (*moments, *joint, gp.posterior(points).mean, gp.posterior(points.unsqueeze(1)).variance):
        assert torch.isfinite(tensor).all()
    assert (moments.variance > 0).all()
    assert (joint.variance > 0).all()


def with_gradient(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x = x.clone().requires_grad_()
    y = smooth(x)
    (g,) = torch.autograd.grad(y.sum(), x)
    return x.detach(), y.detach().unsqueeze(-1), g


@pytest.mark.parametrize("kernel", KERNELS)
def test_half_of_200_points_within_a_millionth(kernel: str) -> None:
    spread, centre = random_points(100, 3), random_points(1, 3, seed=4)
    cluster = centre + 1e-6 * (random_points(100, 3, seed=5) - 0.5)
    assert_sound(JointGradientGP(*with_gradient(torch.cat([spread, cluster])), kernel=kernel))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_same_point_many_times(kernel: str) -> None:
    x = random_points(3, 2).repeat(10, 1)
    gp = JointGradientGP(*with_gradient(x), kernel=kernel)
    assert_sound(gp)
    grown = gp.append(*(part[:1] for part in with_gradient(x)))
    assert torch.isfinite(grown.joint_moments(random_points(4, 2)).covariance).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("level", [0.0, 3.0, -1e8])
def test_constant_functions(kernel: str, level: float) -> None:
    x = random_points(20, 3)
    gp = JointGradientGP(x, torch.full((20, 1), level, dtype=torch.float64), torch.zeros_like(x), kernel=kernel)
    assert_sound(gp)
    assert gp.moments(random_points(5, 3))[0] == pytest.approx(level, abs=1e-6 * max(1.0, abs(level)))


SLOPE = torch.tensor([1.0, -2.0, 0.0], dtype=torch.float64)


@pytest.mark.parametrize("function", [lambda x: x @ SLOPE, lambda x: x.square().sum(-1)], ids=["linear", "quadratic"])
def test_polynomials(function: Callable[[Tensor], Tensor]) -> None:
    """Their likelihood grows without bound in the lengthscale: the prior and the bounds have to hold it."""
    x = random_points(20, 3).requires_grad_()
    y = function(x)
    (g,) = torch.autograd.grad(y.sum(), x)
    gp = JointGradientGP(x.detach(), y.detach()[:, None], g)
    assert_sound(gp)
    points = random_points(20, 3, seed=1)
    torch.testing.assert_close(gp.moments(points)[0], function(points), rtol=1e-2, atol=1e-2)


def test_values_over_many_magnitudes() -> None:
    """Rosenbrock-like: a range of 1e6, and gradients of 1e7."""
    x, y, g = with_gradient(random_points(30, 4))
    assert_sound(JointGradientGP(x, y.abs() ** 6, 6 * y.abs() ** 5 * y.sign() * g))


def test_contradictory_observations() -> None:
    """The same point with different values and gradients: no function has them, a nugget away from no likelihood."""
    x, y, g = observe(10, 2)
    assert_sound(JointGradientGP(torch.cat([x, x]), torch.cat([y, y + 1.0]), torch.cat([g, -g])))


@pytest.mark.parametrize("count", [1, 2])
def test_very_few_observations(count: int) -> None:
    x, y, g = observe(count, 3)
    assert_sound(JointGradientGP(x, y, g))
    assert_sound(JointGradientGP(x, y))
    assert_sound(JointGradientGP(x, torch.full_like(y, torch.nan), g))


def test_no_observation_is_the_prior() -> None:
    empty = torch.empty(0, 2, dtype=torch.float64)
    gp = JointGradientGP(empty, empty[:, :1], empty)
    mean, variance = gp.moments(random_points(3, 2))
    torch.testing.assert_close(mean, torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(variance, torch.ones(3, dtype=torch.float64))
    x, y, g = observe(3, 2)
    assert torch.isfinite(gp.append(x, y, g).moments(x)[0]).all()
    gp.fit_hyperparameters()
    # The modes of the priors: exp(log 0.4 - 0.7^2) and (2 - 1) / 0.5.
    (term,) = gp.hyperparameters.terms
    assert term.lengthscale == pytest.approx(0.4 * np.exp(-0.49), rel=1e-2)
    assert term.outputscale == pytest.approx(2.0, rel=1e-2)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("lengthscale", LENGTHSCALE_BOUNDS)
def test_lengthscales_at_their_bounds(kernel: str, lengthscale: float) -> None:
    x, y, g = (part.numpy() for part in observe(40, 4))
    data = JointData.of(x, np.column_stack([y / 5, g / 5]), np.full((40, 5), np.nan))
    terms = default_terms(kernel, 4)
    lengths = np.full((len(terms), 4), lengthscale)
    hyper = JointHyperparameters(with_hyperparameters(terms, lengths, np.ones(len(terms))))
    posterior = negative_log_posterior(hyper.theta, data, hyper)
    assert np.isfinite(posterior.value)
    assert np.isfinite(posterior.gradient).all()
    assert (np.linalg.eigvalsh(posterior.curvature) > 0).all()


def test_random_pathologies() -> None:
    """Repeated points, points on a grid or a line, clusters of any size; any hyperparameters inside the bounds."""
    rng = np.random.default_rng(0)
    for trial in range(100):
        d, n = int(rng.integers(1, 6)), int(rng.integers(2, 60))
        x = rng.random((n, d))
        clustered = x[:1] + 10.0 ** -rng.uniform(1, 16, (n, 1)) * rng.normal(size=(n, d))
        line = np.repeat(np.linspace(0.0, 1.0, n)[:, None], d, 1)
        x = (x, x[rng.integers(0, max(1, n // 4), n)], clustered, np.round(2.0 * x) / 2.0, line)[trial % 5]
        terms = default_terms(KERNELS[trial // 5 % len(KERNELS)], d)
        lengths = np.exp(rng.uniform(*np.log(LENGTHSCALE_BOUNDS), (len(terms), d)))
        scales = np.exp(rng.uniform(*np.log(OUTPUTSCALE_BOUNDS), len(terms)))
        hyper = JointHyperparameters(with_hyperparameters(terms, lengths, scales))
        data = JointData.of(x, rng.normal(size=(n, d + 1)), np.full((n, d + 1), np.nan))
        posterior = negative_log_posterior(hyper.theta, data, hyper)
        assert np.isfinite(posterior.value)
        assert np.isfinite(posterior.gradient).all()
        assert (np.linalg.eigvalsh(posterior.curvature) > 0).all()
        # No pivot below the root of the nugget: the matrix before it was positive semidefinite.
        assert np.diagonal(factor_rows(data, hyper).lower).min() > 0.99 * nugget(data.pairs.rows) ** 0.5


@pytest.mark.parametrize("rows", [10, 300, 1200])
def test_the_nugget_makes_a_singular_correlation_matrix_factorable(rows: int) -> None:
    """The worst positive semidefinite matrix with a unit diagonal is of rank one."""
    factor = factorize(np.ones((rows, rows)) + nugget(rows) * np.eye(rows))
    assert np.isfinite(np.tril(factor)).all()
    assert (np.diagonal(factor) > 0).all()


def test_a_nugget_that_is_too_small_grows_and_the_model_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every point twice, with its gradient, and no nugget to begin with: fitted, appended and asked all the same."""
    monkeypatch.setattr("eign.models.joint.fitting.nugget", lambda rows: 0.0)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.random((8, 2)))
    y, grad = torch.sin(3.0 * x).sum(1, keepdim=True), 3.0 * torch.cos(3.0 * x)
    once = fit(JointGradientGP(x, y, grad))
    assert once.jitter == 0.0
    twice = fit(JointGradientGP(torch.cat([x, x]), torch.cat([y, y]), torch.cat([grad, grad])))
    appended = once.append(x, y, grad)
    for model in (twice, appended):
        assert 1e-12 <= model.jitter <= 1e-2
        mean, variance = model.moments(x)
        torch.testing.assert_close(mean, y[:, 0], rtol=0, atol=1e-4)
        assert (variance >= 0).all()
