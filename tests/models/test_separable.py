"""The separable model against a dense Gaussian process of all values and partial derivatives."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from eign.models.separable import SCATTERS, conditioned, gains, separable_model, slopes_log_likelihood

SLOPE, CURVATURE = 9.0, 0.25


def kernel(s, t, length):
    """k of one coordinate, in torch, so that autograd makes its derivatives."""
    a, b = s - 0.5, t - 0.5
    return length**2 * torch.exp(-0.5 * ((s - t) / length) ** 2) + SLOPE * a * b + CURVATURE * (a * b) ** 2


def slope_kernels(s, t, length):
    """k, its derivative by t, and by both, of numbers."""
    s, t = (torch.tensor(float(value), dtype=torch.float64, requires_grad=True) for value in (s, t))
    value = kernel(s, t, length)
    (by_t,) = torch.autograd.grad(value, t, create_graph=True)
    (by_both,) = torch.autograd.grad(by_t, s)
    return float(value.detach()), float(by_t.detach()), float(by_both)


def dense_reference(x, y, slopes, length, scatter, size, places):
    """Mean of h_i(t) - h_i(x_b) by one matrix of n (d + 1) rows; variance given the slopes alone."""
    n, d = x.shape
    best = int(y.argmax())
    nugget = scatter + 1e-9
    value_of = np.zeros((d, n, n))
    mixed = np.zeros((d, n, n))
    slope = np.zeros((d, n, n))
    for i in range(d):
        for a in range(n):
            for b in range(n):
                value_of[i, a, b], mixed[i, a, b], slope[i, a, b] = slope_kernels(x[a, i], x[b, i], length)
    # Values count from the best point.
    differences = value_of - value_of[:, [best]] - value_of[:, :, [best]] + value_of[:, [best]][:, :, [best]]
    mixed_differences = mixed - mixed[:, [best]]
    rows = n * (d + 1)
    covariance = np.zeros((rows, rows))
    covariance[:n, :n] = np.einsum("i,iab->ab", size, differences)
    covariance[:n, :n] += max(scatter, 1e-9) * length**2 * size.sum() * np.eye(n)
    for i in range(d):
        block = slice(n * (i + 1), n * (i + 2))
        covariance[:n, block] = size[i] * mixed_differences[i]
        covariance[block, :n] = covariance[:n, block].T
        covariance[block, block] = size[i] * (slope[i] + nugget * np.eye(n))
    told = np.concatenate([y - y[best], slopes.T.ravel()])
    weights = np.linalg.solve(covariance, told)
    means, variances = np.zeros((d, len(places))), np.zeros((d, len(places)))
    for i in range(d):
        for j, t in enumerate(places):
            at_t = [slope_kernels(t, x[a, i], length) for a in range(n)]
            base = slope_kernels(t, x[best, i], length)[0] - value_of[i, best, best]
            cross = np.zeros(rows)
            cross[:n] = [size[i] * (at_t[a][0] - value_of[i, best, a] - base) for a in range(n)]
            by_slope = size[i] * np.array([at_t[a][1] - mixed[i, best, a] for a in range(n)])
            block = slice(n * (i + 1), n * (i + 2))
            cross[block] = by_slope
            means[i, j] = cross @ weights
            prior = slope_kernels(t, t, length)[0] - 2.0 * slope_kernels(t, x[best, i], length)[0]
            prior += value_of[i, best, best]
            variances[i, j] = size[i] * prior - by_slope @ np.linalg.solve(covariance[block, block], by_slope)
    return means, variances


@pytest.mark.parametrize(("length", "scatter"), [(0.2, 1e-2), (0.8, 1e-4), (0.05, 1e-6)])
def test_same_as_a_dense_process(length, scatter):
    rng = np.random.default_rng(3)
    x, y, slopes = rng.random((4, 3)), rng.standard_normal(4), rng.standard_normal((4, 3))
    model = conditioned(np.ascontiguousarray(x.T), y, np.ascontiguousarray(slopes.T), length=length, scatter=scatter)
    places = np.array([0.0, 0.31, 0.77, 1.0])
    found = gains(model, np.broadcast_to(places, (3, 4)).copy())
    means, variances = dense_reference(x, y, slopes, length, scatter, model.size, places)
    # Both are exact; the dense matrix has a condition of up to 1e9 here, which leaves seven digits.
    np.testing.assert_allclose(found.mean, means, rtol=1e-6, atol=1e-7 * np.abs(means).max())
    np.testing.assert_allclose(found.variance, variances, rtol=1e-5, atol=1e-7 * variances.max())


def test_the_best_point_gains_nothing():
    rng = np.random.default_rng(0)
    x, slopes = rng.random((30, 6)), rng.standard_normal((30, 6))
    model = conditioned(x, rng.standard_normal(6), slopes, length=0.2, scatter=1e-2)
    found = gains(model, x[:, [model.best]])
    assert np.abs(found.mean).max() < 1e-12
    assert np.abs(found.variance).max() < 1e-12


def separable_function(x, shift):
    """Two wells along every coordinate, of different depth."""
    c = 8.0 * (x - shift)
    return -(c**4 / 16 - c**2 + 0.3 * c).sum(axis=-1), -8.0 * (c**3 / 4 - 2.0 * c + 0.3)


def test_finds_the_better_well_of_every_coordinate():
    rng = np.random.default_rng(5)
    shift = rng.uniform(0.4, 0.6, 120)  # more than one block of coordinates
    x = rng.random((16, 120))
    y, gradients = separable_function(x, shift)
    model = separable_model(x, y, gradients, rng)
    assert model is not None
    assert model.scatter < SCATTERS[-1]
    places = np.broadcast_to(np.linspace(0.0, 1.0, 129), (120, 129)).copy()
    best = places[0][gains(model, places).mean.argmax(axis=1)]
    optimum = shift + np.real(np.roots([0.25, 0.0, -2.0, 0.3]).min()) / 8.0
    assert np.mean(np.abs(best - optimum) < 0.03) > 0.95


def test_a_rotated_valley_is_not_separable():
    rng = np.random.default_rng(6)
    turned = np.linalg.qr(rng.standard_normal((40, 40)))[0] * np.geomspace(1.0, 100.0, 40)[:, None]
    x = rng.random((15, 40))
    inside = (x - 0.5) @ turned.T
    assert separable_model(x, -0.5 * (inside**2).sum(axis=1), -inside @ turned, rng) is None


def test_the_bottom_of_a_bowl_under_ripples():
    rng = np.random.default_rng(7)
    bottom = rng.uniform(0.3, 0.7, 150)
    x = rng.random((20, 150))
    away = x - bottom
    y = -(away**2).sum(axis=1) + 0.05 * np.cos(60.0 * away).sum(axis=1)
    model = separable_model(x, y, -2.0 * away - 3.0 * np.sin(60.0 * away), rng)
    assert model is not None
    # Curvature of the bowl; ripples average out over 3,000 slopes, whose scatter of 2.1 leaves 0.13.
    assert abs(model.curvature + 2.0) < 0.4
    places = np.broadcast_to(np.linspace(0.0, 1.0, 129), (150, 129)).copy()
    best = places[0][gains(model, places).mean.argmax(axis=1)]
    before = np.abs(x - bottom).mean(axis=1).min()
    assert np.abs(best - bottom).mean() < 0.5 * before


def test_the_likelihood_of_slopes_is_the_largest_over_their_sizes():
    rng = np.random.default_rng(8)
    x, slopes = rng.random((2, 5)), rng.standard_normal((2, 5))

    def direct(length, scatter):
        total = 0.0
        for points, told in zip(x, slopes, strict=True):
            covariance = np.array([[slope_kernels(s, t, length)[2] for t in points] for s in points])
            covariance += (scatter + 1e-9) * np.eye(5)
            size = told @ np.linalg.solve(covariance, told) / 5
            total += multivariate_normal(cov=size * covariance).logpdf(told)
        return total

    choices = [(0.2, 1e-2), (0.4, 1e-4), (0.1, 1.0)]
    found = [slopes_log_likelihood(x, slopes, *choice) for choice in choices]
    expected = [direct(*choice) for choice in choices]
    # Both leave out, or have, the same constant; covariances of condition 1e4 leave ten digits.
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-9, atol=1e-9)


def test_one_gradient_says_nothing_about_separability():
    rng = np.random.default_rng(9)
    x, slopes = rng.random((30, 1)), rng.standard_normal((30, 1))
    likelihoods = [slopes_log_likelihood(x, slopes, 0.2, scatter) for scatter in SCATTERS]
    np.testing.assert_allclose(likelihoods, likelihoods[0], rtol=1e-10)
    assert separable_model(x.T, np.zeros(1), slopes.T, rng) is None
