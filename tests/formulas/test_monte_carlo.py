"""The reparameterised estimates converge to the exact values and are deterministic, differentiable functions."""

import numpy as np
import pytest
import torch

from eign.formulas import (
    auxiliary_improvement,
    auxiliary_improvement_full,
    auxiliary_improvement_mc,
    auxiliary_improvement_mc_full,
    gradient_increase,
    gradient_increase_full,
    gradient_increase_mc,
    gradient_increase_mc_full,
    normal_base_samples,
)

from .posteriors import Posterior, tensor


@pytest.fixture
def case() -> Posterior:
    rng = np.random.default_rng(5)
    factor = rng.standard_normal((5, 5))
    joint = factor @ factor.T / 5 + 0.1 * np.eye(5)
    return Posterior(
        0.2, np.sqrt(joint[0, 0]), rng.standard_normal(4), joint[1:, 1:], joint[0, 1:], 0.0, rng.standard_normal(4), 0.3
    )


def test_base_samples_are_normal_and_reproducible():
    samples = normal_base_samples(4096, 3, seed=7)
    assert samples.dtype == torch.float64
    assert torch.equal(samples, normal_base_samples(4096, 3, seed=7))
    assert not torch.equal(samples, normal_base_samples(4096, 3, seed=8))
    assert samples.isfinite().all()
    # a scrambled net of 2^12 points balances its moments far better than 1/sqrt(n) = 0.016
    assert samples.mean(0).abs().max() < 2e-3
    torch.testing.assert_close(samples.T @ samples / 4096, torch.eye(3, dtype=torch.float64), atol=2e-2, rtol=0)


def test_estimates_approach_the_exact_values(case):
    m, s, g = tensor(case.grad_mean), tensor(case.grad_sigma), tensor(case.best_grad)
    chol, joint_chol = tensor(np.linalg.cholesky(case.grad_cov)), tensor(np.linalg.cholesky(case.joint_cov))
    mean, sigma = tensor(case.mean), tensor(case.sigma)
    base, joint_base = normal_base_samples(2**16, 4, seed=0), normal_base_samples(2**16, 5, seed=0)
    pairs = [
        (gradient_increase_mc(m, s, g, base), gradient_increase(m, s, g)),
        (gradient_increase_mc_full(m, chol, g, base), gradient_increase_full(m, tensor(case.grad_cov), g)),
        (
            auxiliary_improvement_mc(mean, sigma, m, s, case.best_g, case.alpha, joint_base),
            auxiliary_improvement(mean, sigma, m, s, case.best_g, case.alpha),
        ),
        (
            auxiliary_improvement_mc_full(tensor(case.joint_mean), joint_chol, case.best_g, case.alpha, joint_base),
            auxiliary_improvement_full(
                mean, sigma, m, tensor(case.grad_cov), case.best_g, case.alpha, cross_cov=tensor(case.cross)
            ),
        ),
    ]
    for estimate, exact in pairs:
        # plain Monte Carlo would have a relative error near 1/sqrt(65536) = 4e-3; the net does ten times better
        assert float(estimate) == pytest.approx(float(exact), rel=2e-3)
        assert float(estimate) != float(exact)


def test_estimates_are_differentiable(case):
    base = normal_base_samples(64, 4, seed=1)
    m, s, g = (tensor(x).requires_grad_() for x in (case.grad_mean, case.grad_sigma, case.best_grad))
    assert torch.autograd.gradcheck(lambda *x: gradient_increase_mc(*x, base), (m, s, g))
    joint = normal_base_samples(64, 5, seed=1)
    mean, sigma = tensor(case.mean).requires_grad_(), tensor(case.sigma).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *x: auxiliary_improvement_mc(*x, case.best_g, case.alpha, joint), (mean, sigma, m, s)
    )
    chol = tensor(np.linalg.cholesky(case.grad_cov)).requires_grad_()
    assert torch.autograd.gradcheck(lambda *x: gradient_increase_mc_full(*x, base), (m, chol, g))
    joint_chol = tensor(np.linalg.cholesky(case.joint_cov)).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *x: auxiliary_improvement_mc_full(*x, case.best_g, case.alpha, joint),
        (tensor(case.joint_mean).requires_grad_(), joint_chol),
    )


def test_weights_belong_to_points_not_to_samples(case):
    base = normal_base_samples(8, 5, seed=2)
    alphas = torch.linspace(0, 1, 8, dtype=torch.float64)
    moments = (tensor(case.mean), tensor(case.sigma), tensor(case.grad_mean), tensor(case.grad_sigma))
    together = auxiliary_improvement_mc(*moments, case.best_g, alphas, base)
    one_by_one = [auxiliary_improvement_mc(*moments, case.best_g, float(alpha), base) for alpha in alphas]
    torch.testing.assert_close(together, torch.stack(one_by_one))
