"""What every formula promises: batch shapes broadcast, batches equal single calls, dtype and inputs are kept."""

import pytest
import torch

from eign import formulas

D = 3
BASE = formulas.normal_base_samples(32, D, seed=0)
JOINT_BASE = formulas.normal_base_samples(32, D + 1, seed=0)


def batch(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def covariance(*shape: int, dim: int = D, seed: int = 9) -> torch.Tensor:
    factor = batch(*shape, dim, dim, seed=seed)
    return factor @ factor.mT + 0.1 * torch.eye(dim, dtype=torch.float64)


def values(n: int, m: int) -> dict[str, torch.Tensor]:
    """Posterior moments with batch shapes that broadcast to n x m."""
    return {
        "mean": batch(n, 1, seed=1),
        "sigma": batch(1, m, seed=2).abs() + 0.2,
        "grad_mean": batch(n, m, D, seed=3),
        "grad_sigma": batch(m, D, seed=4).abs() + 0.2,
        "grad_cov": covariance(n, 1),
        "best_grad": batch(D, seed=6),
        "best_g": batch(n, 1, seed=7),
        "alpha": batch(m, seed=8).abs(),
        "cross_cov": 0.02 * batch(n, m, D, seed=5),
    }


def chol(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.cholesky(x)


FORMULAS = {
    "expected_improvement": lambda v: formulas.expected_improvement(v["mean"], v["sigma"], 0.1),
    "expected_improvement_xi": lambda v: formulas.expected_improvement(v["mean"], v["sigma"], 0.1, xi=0.2),
    "log_expected_improvement": lambda v: formulas.log_expected_improvement(v["mean"], v["sigma"], 0.1),
    "probability_of_improvement": lambda v: formulas.probability_of_improvement(v["mean"], v["sigma"], 0.1),
    "upper_confidence_bound": lambda v: formulas.upper_confidence_bound(v["mean"], v["sigma"]),
    "orthant": lambda v: formulas.orthant_gradient_increase(v["grad_mean"], v["grad_sigma"], v["best_grad"]),
    "orthant_full": lambda v: formulas.orthant_gradient_increase_full(
        v["grad_mean"], chol(v["grad_cov"]), v["best_grad"]
    ),
    "increase": lambda v: formulas.gradient_increase(v["grad_mean"], v["grad_sigma"], v["best_grad"]),
    "increase_full": lambda v: formulas.gradient_increase_full(v["grad_mean"], v["grad_cov"], v["best_grad"]),
    "increase_mc": lambda v: formulas.gradient_increase_mc(v["grad_mean"], v["grad_sigma"], v["best_grad"], BASE),
    "increase_mc_full": lambda v: formulas.gradient_increase_mc_full(
        v["grad_mean"], chol(v["grad_cov"]), v["best_grad"], BASE
    ),
    "auxiliary": lambda v: formulas.auxiliary_improvement(
        v["mean"], v["sigma"], v["grad_mean"], v["grad_sigma"], -1.0, 0.6
    ),
    "auxiliary_full": lambda v: formulas.auxiliary_improvement_full(
        v["mean"], v["sigma"], v["grad_mean"], v["grad_cov"], -1.0, 0.6
    ),
    "auxiliary_joint": lambda v: formulas.auxiliary_improvement_full(
        v["mean"], v["sigma"], v["grad_mean"], v["grad_cov"], v["best_g"], v["alpha"], cross_cov=v["cross_cov"]
    ),
    "auxiliary_tensors": lambda v: formulas.auxiliary_improvement(
        v["mean"], v["sigma"], v["grad_mean"], v["grad_sigma"], v["best_g"], v["alpha"]
    ),
    "auxiliary_mc": lambda v: formulas.auxiliary_improvement_mc(
        v["mean"], v["sigma"], v["grad_mean"], v["grad_sigma"], -1.0, 0.6, JOINT_BASE
    ),
    "auxiliary_bound": lambda v: formulas.auxiliary_improvement_bound(
        v["mean"], v["sigma"], v["grad_mean"], v["grad_sigma"], 0.1, v["best_grad"], 0.6
    ),
    "ei_gn": lambda v: formulas.ei_gn(v["mean"], v["sigma"], v["grad_mean"], v["grad_sigma"], 0.1, v["best_grad"], 0.6),
    "objective": lambda v: formulas.auxiliary_objective(v["mean"], v["grad_mean"], 0.6),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_batches_broadcast_and_equal_single_calls(name):
    n, m = 2, 4
    formula, v = FORMULAS[name], values(n, m)
    before = {key: x.clone() for key, x in v.items()}
    result = formula(v)
    assert result.shape == (n, m)
    assert result.dtype == torch.float64
    assert result.isfinite().all()
    assert all(torch.equal(v[key], before[key]) for key in v)
    for i in range(n):
        for j in range(m):
            one = {
                "mean": v["mean"][i, 0],
                "sigma": v["sigma"][0, j],
                "grad_mean": v["grad_mean"][i, j],
                "grad_sigma": v["grad_sigma"][j],
                "grad_cov": v["grad_cov"][i, 0],
                "best_grad": v["best_grad"],
                "best_g": v["best_g"][i, 0],
                "alpha": v["alpha"][j],
                "cross_cov": v["cross_cov"][i, j],
            }
            assert formula(one).shape == ()
            torch.testing.assert_close(formula(one), result[i, j], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_an_empty_batch_gives_an_empty_result(name):
    assert FORMULAS[name](values(0, 4)).shape == (0, 4)


def test_joint_samples_equal_independent_ones_for_a_diagonal_factor():
    v = values(2, 4)
    mean, sigma = v["mean"].expand(2, 4), v["sigma"].expand(2, 4)
    grad_sigma = v["grad_sigma"].expand(2, 4, D)
    joint_mean = torch.cat([mean.unsqueeze(-1), v["grad_mean"]], -1)
    joint_chol = torch.diag_embed(torch.cat([sigma.unsqueeze(-1), grad_sigma], -1))
    full = formulas.auxiliary_improvement_mc_full(joint_mean, joint_chol, -1.0, 0.6, JOINT_BASE)
    torch.testing.assert_close(full, FORMULAS["auxiliary_mc"](v))


def test_missing_moments_give_a_missing_value_not_an_error():
    nan = torch.full((D,), float("nan"), dtype=torch.float64)
    one = torch.ones(D, dtype=torch.float64)
    assert formulas.gradient_increase(nan, one, one).isnan()
    assert formulas.orthant_gradient_increase(nan, one, one).isnan()
    assert formulas.auxiliary_improvement(one[0], one[0], nan, one, 0.0, 0.6).isnan()
