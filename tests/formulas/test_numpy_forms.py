"""The NumPy closed forms against the torch formulas and their automatic derivatives."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from eign import formulas
from eign.formulas import gradient_norm_numpy, improvement_numpy, normal_numpy
from eign.formulas.improvement_numpy import ByMoments

from .posteriors import posteriors, tensor

standardized = st.floats(-1e3, 1e6)


def by_autograd(formula, mean, variance) -> ByMoments:
    mean, variance = (tensor(part).requires_grad_() for part in (mean, variance))
    value = formula(mean, variance.sqrt())
    by_mean, by_variance = torch.autograd.grad(value.sum(), (mean, variance))
    return ByMoments(value.detach().numpy(), by_mean.numpy(), by_variance.numpy())


def assert_same(found: ByMoments, expected: ByMoments, *, rtol: float) -> None:
    for name, one, other in zip(ByMoments._fields, found, expected, strict=True):
        size = np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * size + 1e-290, err_msg=name)


@given(standardized)
def test_normal_tail(z):
    found = normal_numpy.normal_tail(np.array([z]))
    _, excess, variance = formulas.normal_tail(tensor([z]))
    # The definitions lose z^2 and z^4 roundings up to the switch at z = 20.
    np.testing.assert_allclose(found.excess, excess, rtol=1e-12)
    np.testing.assert_allclose(found.variance, variance, rtol=2e-10)
    # Far left the mean is tiny and the sum of z and the excess has lost it; there the closed form is the better one.
    np.testing.assert_allclose(found.mills, tensor([z]) + excess, rtol=1e-12, atol=1e-13 * max(1.0, abs(z)))


@given(posteriors(), st.floats(-30, 5))
def test_improvements(p, u):
    mean, variance = np.array([p.best + u * p.sigma]), np.array([p.sigma**2])
    for closed, formula in (
        (improvement_numpy.expected_improvement, formulas.expected_improvement),
        (improvement_numpy.log_expected_improvement, formulas.log_expected_improvement),
    ):
        expected = by_autograd(lambda m, s, f=formula: f(m, s, p.best), mean, variance)
        # phi(u) / Phi(u) at u = 5 is 1.5e-6, which autograd's z + e has as the difference of numbers of size 5.
        assert_same(closed(mean, variance, p.best), expected, rtol=2e-9)


@given(posteriors(), st.floats(0, 10))
def test_upper_confidence_bound(p, weight):
    mean, variance = np.array([p.mean]), np.array([p.sigma**2])
    expected = by_autograd(lambda m, s: formulas.upper_confidence_bound(m, s, weight=weight), mean, variance)
    assert_same(improvement_numpy.upper_confidence_bound(mean, variance, weight), expected, rtol=1e-14)


@given(posteriors())
def test_orthant_gradient_increase(p):
    mean, variance = p.grad_mean[None], np.diag(p.grad_cov)[None].copy()
    best = tensor(p.best_grad)
    expected = by_autograd(lambda m, s: formulas.orthant_gradient_increase(m, s, best), mean, variance)
    assert_same(gradient_norm_numpy.orthant_gradient_increase(mean, variance, p.best_grad), expected, rtol=1e-9)


@given(posteriors())
def test_ei_gn_has_both(p):
    mean, variance = np.append(p.mean, p.grad_mean)[None], np.append(p.sigma**2, np.diag(p.grad_cov))[None]
    first, second = 0.7, 1.3
    improvement = improvement_numpy.expected_improvement(mean[:, 0], variance[:, 0], p.best)
    increase = gradient_norm_numpy.orthant_gradient_increase(mean[:, 1:], variance[:, 1:], p.best_grad)
    found = gradient_norm_numpy.ei_gn(mean, variance, np.append(p.best, p.best_grad), (first, second))
    np.testing.assert_allclose(found.value, first * improvement.value - second * increase.value, rtol=1e-12)
    for whole, one, others in zip(found[1:], improvement[1:], increase[1:], strict=True):
        np.testing.assert_allclose(whole, np.append(first * one, -second * others)[None], rtol=1e-12)


@given(posteriors(correlated=True))
def test_orthant_gradient_increase_full(p):
    mean, covariance = tensor(p.grad_mean[None]).requires_grad_(), tensor(p.grad_cov[None]).requires_grad_()
    value = formulas.orthant_gradient_increase_full(mean, torch.linalg.cholesky(covariance), tensor(p.best_grad))
    by_mean, by_covariance = torch.autograd.grad(value.sum(), (mean, covariance))
    # Autograd's derivative by a symmetric matrix is only defined up to an antisymmetric part.
    expected = ByMoments(value.detach().numpy(), by_mean.numpy(), 0.5 * (by_covariance + by_covariance.mT).numpy())
    found = gradient_norm_numpy.orthant_gradient_increase_full(
        p.grad_mean[None], np.linalg.cholesky(p.grad_cov[None]), p.best_grad
    )
    assert_same(found, expected, rtol=1e-6)
