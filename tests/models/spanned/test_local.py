"""The model around a point of a long run."""

import numpy as np
import torch

from eign.arrays import Array
from eign.data import Observations
from eign.models.joint.hyperparameters import JointHyperparameters
from eign.models.spanned.local import COUNT, in_given_units, local_model
from eign.models.spanned.model import SpannedGradientGP


def run(n: int, d: int) -> Observations:
    """Gradient ascent on a quadratic in d coordinates, from far away; one evaluation failed."""
    curvature = np.linspace(1.0, 10.0, d)
    x, rows = np.full(d, 0.9), []
    for _ in range(n):
        rows.append((x, -0.5 * float(curvature @ (x - 0.3) ** 2), -curvature * (x - 0.3)))
        x = x + 0.05 * rows[-1][2]
    points, values, gradients = (np.array(part) for part in zip(*rows, strict=True))
    values[5] = -np.inf
    return Observations(points, values, gradients)


def best(data: Observations) -> Array:
    return np.array(data.x[int(np.argmax(np.where(data.has_y, data.y, -np.inf)))])


def test_the_model_keeps_what_is_near_and_is_fitted_to_it() -> None:
    data = run(70, 50)
    model = local_model(data, best(data), count=30)
    np.testing.assert_array_equal(model.observations.x, data.x[-30:])
    kept = data[-30:]
    alone = SpannedGradientGP(torch.tensor(kept.x), torch.tensor(kept.y)[:, None], torch.tensor(kept.grad))
    alone.fit_hyperparameters(evaluations=25)
    np.testing.assert_allclose(model.hyperparameters.theta, alone.hyperparameters.theta)
    assert len(local_model(data, best(data)).observations) == COUNT


def test_it_predicts_the_next_evaluation() -> None:
    data = run(60, 50)
    seen, following = data[:50], data[50]
    model = local_model(seen, best(seen))
    mean, gradient = model.mean_and_gradient(torch.tensor(following.x))
    gain = abs(following.y[0] - seen.y[-1])
    assert abs(float(mean[0]) - following.y[0]) < 0.1 * gain
    assert np.linalg.norm(gradient.numpy() - following.grad) < 0.2 * np.linalg.norm(following.grad - seen.grad[-1])


def test_a_refit_starts_from_the_last_and_survives_storage() -> None:
    data = run(45, 30)
    last = local_model(data[:40], best(data[:40]))
    stored = JointHyperparameters.from_json(in_given_units(last).to_json())
    again = local_model(data, best(data), start=stored, evaluations=1)
    # A single evaluation is that of the start, so that the prior in the units given is the last one's.
    np.testing.assert_allclose(in_given_units(again).theta, stored.theta)


def test_few_observations_are_all_kept() -> None:
    data = run(7, 30)
    assert len(local_model(data, best(data)).observations) == 6
