"""GP samples: the function of the paper's description, its seeds, its maximum."""

import numpy as np
import pytest
from scipy.stats import kstest

from eign import problems
from eign.problems.gp_samples import covariance, lengthscale, locate_maximum, sample


@pytest.mark.parametrize("d", [4, 7])
def test_it_is_the_posterior_mean_given_the_sample(d):
    """By the textbook formula, and by a GP of GPyTorch's kernel in the surrogate's hands."""
    f = sample(d, seed=3)
    assert f.centres.shape == (200 * d, d)
    assert f.lengthscale == 0.4 / np.sqrt(d) == lengthscale(d)
    prior = covariance(f.centres, f.centres, f.lengthscale) + 1e-6 * np.eye(200 * d)
    y = prior @ f.weights
    X = np.random.default_rng(0).random((50, d))
    expected = covariance(X, f.centres, f.lengthscale) @ np.linalg.solve(prior, y)
    np.testing.assert_allclose(f(X)[0], expected, rtol=0, atol=1e-9)
    # At the points themselves it is the sample, up to the nugget: 1e-6 times weights of at most 50.
    np.testing.assert_allclose(f(f.centres)[0], y, rtol=0, atol=1e-4)


def test_the_sample_is_from_the_prior():
    """Whitened by the Cholesky factor of the covariance, values at the points are standard normal."""
    f = sample(7, seed=1)
    factor = np.linalg.cholesky(covariance(f.centres, f.centres, f.lengthscale) + 1e-6 * np.eye(1400))
    assert kstest(factor.T @ f.weights, "norm").pvalue > 0.01


def test_the_kernel_is_the_squared_exponential():
    assert covariance(np.zeros((1, 2)), np.array([[0.3, 0.4]]), 0.5)[0, 0] == pytest.approx(np.exp(-0.5))


def test_the_hessian_is_the_slope_of_the_gradient():
    f, x, step = sample(4, seed=2), np.full(4, 0.4), 1e-6
    differences = [(f((x + step * e)[None])[1] - f((x - step * e)[None])[1])[0] / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(f.hessian(x), differences, rtol=1e-6, atol=1e-6)


def test_a_seed_is_a_function_and_0_is_the_papers():
    x = np.full(7, 0.3)
    assert problems.get("gp-sample-7", seed=3)(x)[0] == problems.get("gp-sample", 7, seed=3)(x)[0]
    assert problems.get("gp-sample-7")(x)[0] == problems.get("gp-sample-7", seed=0)(x)[0]
    assert problems.get("gp-sample-7")(x)[0] != problems.get("gp-sample-7", seed=3)(x)[0]
    assert problems.get("gp-sample").name == "gp-sample-7"


@pytest.mark.parametrize(("d", "optimum"), [(7, 4.212003259), (8, 3.203929467), (9, 3.233158689)])
def test_the_papers_three_stay_the_same(d, optimum):
    """On another machine too, up to the rounding of its Cholesky factorisation."""
    assert problems.get("gp-sample", d).optimum == pytest.approx(optimum, abs=1e-8)


@pytest.mark.parametrize("d", [2, 7])
def test_more_climbs_find_nothing_higher(d):
    f = sample(d)
    few, all_centres = (f(locate_maximum(f, climbs=climbs)[None])[0][0] for climbs in (256, 200 * d))
    assert few == pytest.approx(all_centres, abs=1e-9)
