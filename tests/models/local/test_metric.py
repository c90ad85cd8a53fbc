"""Coordinates of BFGS: both factors, and the curvature they stand for."""

import numpy as np
import pytest
from scipy.optimize import BFGS

from eign.arrays import Array
from eign.models.local.metric import Metric, bfgs_metric


def _pairs(d: int, count: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(d)
    root = rng.normal(size=(d, d))
    steps = rng.normal(size=(count, d))
    return steps, steps @ (root @ root.T + np.eye(d))


def _curvature(metric: Metric, d: int) -> Array:
    forward = metric.coordinates(np.eye(d))
    return np.asarray(forward @ forward.T)


def _scipys(steps: Array, changes: Array) -> Array:
    d = steps.shape[1]
    peer = BFGS(init_scale=float(np.linalg.norm(changes[-1]) / np.linalg.norm(steps[-1])))
    peer.initialize(d, "hess")
    for step, change in zip(steps, changes, strict=True):
        peer.update(step, change)
    return np.asarray(peer.get_matrix())


@pytest.mark.parametrize(("d", "count"), [(3, 2), (12, 3)])
def test_of_few_pairs_the_curvature_is_scipys(d: int, count: int) -> None:
    steps, changes = _pairs(d, count)
    found = _curvature(bfgs_metric(steps, changes, 1.0), d)
    # Rounding of a few updates of matrices with condition numbers of hundreds.
    np.testing.assert_allclose(found, _scipys(steps, changes), rtol=1e-8, atol=1e-8 * np.abs(found).max())


def test_of_pairs_that_contradict_each_other_the_curvature_is_scipys() -> None:
    """Pairs of ever steeper parabolas: what meets the last ones foretells the next no better."""
    steps, _ = _pairs(6, 9)
    steps[1::2] = steps[::2][: len(steps[1::2])]
    changes = steps * np.geomspace(1.0, 1e4, len(steps))[:, None] * np.linspace(1.0, 9.0, 6)
    found = _curvature(bfgs_metric(steps, changes, 1.0), 6)
    np.testing.assert_allclose(found, _scipys(steps, changes), rtol=1e-8, atol=1e-8 * np.abs(found).max())


@pytest.mark.parametrize("condition", [1e2, 1e6])
def test_of_a_parabola_sweeps_meet_pairs_that_bfgs_misses(condition: float) -> None:
    shares = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        turned = np.linalg.qr(rng.normal(size=(8, 8)))[0]
        steps = rng.normal(size=(8, 8))
        changes = steps @ (turned * np.geomspace(1.0, condition, 8)) @ turned.T
        found = _curvature(bfgs_metric(steps, changes, 1.0), 8)
        misses = [np.linalg.norm(steps @ B - changes, axis=1) for B in (found, _scipys(steps, changes))]
        ours, scipys = (np.median(each / np.linalg.norm(changes, axis=1)) for each in misses)
        # Where held-out pairs say that sweeps do not help it is SciPy's.
        assert ours <= scipys * (1.0 + 1e-9)
        assert np.all(np.linalg.eigvalsh(found) > 0.0)
        shares.append(ours / scipys)
    # Linear convergence, five sweeps: a quarter in the median of these, and none would be 1.
    assert np.median(shares) < 0.4


def test_maps_are_inverse_and_gradients_follow_the_chain_rule() -> None:
    steps, changes = _pairs(30, 4)
    metric = bfgs_metric(steps, changes, 1.0)
    x, gradient = np.random.default_rng(1).normal(size=(2, 30))
    np.testing.assert_allclose(metric.differences(metric.coordinates(x)), x, atol=1e-10)
    # g . x is the same number in both coordinates.
    assert metric.gradients(gradient) @ metric.coordinates(x) == pytest.approx(gradient @ x, rel=1e-10)


def test_pairs_that_curve_downwards_or_overflow_are_left_out() -> None:
    steps = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    changes = np.array([[-1.0, 0.0], [0.0, 4.0], [1e200, 1e200]])
    curvature = _curvature(bfgs_metric(steps, changes, 1.0), 2)
    np.testing.assert_allclose(curvature, 4.0 * np.eye(2))
    np.testing.assert_allclose(_curvature(bfgs_metric(steps[:1], changes[:1], 9.0), 2), 9.0 * np.eye(2))


def test_pairs_whose_squares_vanish_say_nothing() -> None:
    """A change of 1e-170 has no square, and once made the scale zero, by which all else is divided."""
    metric = bfgs_metric(np.array([[0.5, 0.0]]), np.array([[1e-170, 0.0]]), 4.0)
    assert metric.scale == 2.0
    np.testing.assert_allclose(metric.gradients(np.array([1.0, 2.0])), [0.5, 1.0])
