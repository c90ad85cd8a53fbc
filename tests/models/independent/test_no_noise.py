"""Without noise: what the model knows next to its data, with what jitter, and what it does where that breaks down."""

import warnings

import mpmath
import numpy as np
import pytest
import torch

from eign.models import Hyperparameters, IndependentGradientGP, fit
from eign.models.independent.fitting import fit_problems, likelier_jitter
from eign.models.independent.map_objective import FitProblem, negative_log_posterior
from eign.models.independent.processes import moments
from eign.models.kernels import correlation
from eign.standardization import Standardization

JITTER = 1e-12


def design(count: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, dim))


def smooth(x: np.ndarray) -> np.ndarray:
    return np.sin(3.0 * x).sum(axis=1) + x[:, 0] * x[:, -1]


def model(x: np.ndarray, y: np.ndarray, **options: object) -> IndependentGradientGP:
    return IndependentGradientGP(torch.from_numpy(x), torch.from_numpy(y)[:, None], **options)  # type: ignore[arg-type]


def exact_deviation(x: np.ndarray, at: np.ndarray, lengthscale: float) -> float:
    """The posterior standard deviation of a Matern-5/2 process of unit variance without any noise, in 60 digits."""
    with mpmath.workdps(60):

        def covariance(a: np.ndarray, b: np.ndarray) -> mpmath.mpf:
            squares = [(mpmath.mpf(float(p)) - mpmath.mpf(float(q))) ** 2 for p, q in zip(a, b, strict=True)]
            u = mpmath.sqrt(5 * mpmath.fsum(squares)) / mpmath.mpf(lengthscale)
            return (1 + u + u**2 / 3) * mpmath.exp(-u)

        k = mpmath.matrix([covariance(at, other) for other in x])
        matrix = mpmath.matrix([[covariance(a, b) for b in x] for a in x])
        return float(mpmath.sqrt(1 - (k.T * mpmath.cholesky_solve(matrix, k))[0]))


@pytest.mark.parametrize("lengthscale", [0.2, 0.4])
@pytest.mark.parametrize("distance", [1e-2, 1e-3, 1e-4, 1e-5, 0.0])
def test_deviations_next_to_data_are_right_down_to_the_jitter(distance: float, lengthscale: float) -> None:
    """To 10 per cent above 2.3e-6 prior deviations, and no more than the jitter's 1e-6 off below.

    A variance v then is at most v + 1e-12, and 1.21 v for v > 4.8e-12.
    """
    x = design(25, 3)
    direction = np.array([0.6, -0.64, 0.48])
    units = Standardization(0.0, 1.0, np.zeros(3), np.ones(3))
    gp = model(x, smooth(x), standardization=units).with_hyperparameters(
        Hyperparameters.shared(3, lengthscale=lengthscale)
    )
    for index in (0, 7):
        at = np.clip(x[index] + distance * direction, 0.0, 1.0)
        exact = exact_deviation(x, at, lengthscale)
        ours = float(gp.moments(torch.from_numpy(at)[None]).variance.sqrt())
        if exact > 2.3e-6:
            assert ours == pytest.approx(exact, rel=0.1)
        else:
            assert exact <= ours < np.hypot(exact, 1.05 * JITTER**0.5)


def test_a_nugget_of_1e_6_would_not_be_right() -> None:
    """What was assumed before: a hundredth of a coordinate from a point it is off by half, at the point by all."""
    x = design(25, 3)
    at = x[0] + np.array([1e-3, 0.0, 0.0])
    units = Standardization(0.0, 1.0, np.zeros(3), np.ones(3))
    hyper = Hyperparameters.shared(3, lengthscale=0.4)
    gp = model(x, smooth(x), standardization=units, noise=1e-6).with_hyperparameters(hyper)
    deviation = float(gp.moments(torch.from_numpy(at)[None]).variance.sqrt())
    assert deviation > 1.05 * exact_deviation(x, at, 0.4)


def test_the_floor_is_below_every_right_variance() -> None:
    """A point that was observed 40 times, where the bound of `smallest_variance` is attained."""
    rng = np.random.default_rng(0)
    for noise in (None, 1e-4, 0.3):
        x = np.repeat(rng.random((1, 2)), 40, axis=0)
        gp = model(x, np.zeros(40), noise=noise).with_hyperparameters(
            Hyperparameters.shared(2, lengthscale=0.3, outputscale=2.0)
        )
        processes = gp.conditioned()
        level = JITTER if noise is None else noise
        assert processes.floor[0] == pytest.approx(2.0 * level / (40 * 2.0 + level), rel=1e-9)
        variance = moments(processes, x[:1]).variance[0, 0]
        assert variance == pytest.approx(processes.floor[0], rel=2e-2)
        assert (moments(processes, rng.random((200, 2))).variance >= processes.floor).all()


def test_it_says_what_it_used() -> None:
    x = design(20, 2)
    assert (model(x, smooth(x)).jitter == JITTER).all()
    assert (model(x, smooth(x), noise=0.0).jitter == JITTER).all()
    assert (model(x, smooth(x), noise=1e-3).jitter == 0).all()
    assert (fit(model(x, smooth(x))).hyperparameters.jitter == 1e-9).all()


@pytest.mark.parametrize("kernel", ["matern52", "rbf"])
@pytest.mark.parametrize(
    "case", ["as close as 1e-9", "repeated", "constant", "scale 1e12", "scale 1e-12", "one point", "a line of 200"]
)
def test_hard_data_have_a_sane_model(case: str, kernel: str) -> None:
    """Fitted, extended and asked: finite, and at the data what was told there."""
    x = design(24, 3, seed=3)
    y = smooth(x)
    if case == "as close as 1e-9":
        x = np.concatenate([x, np.clip(x + 1e-9, 0.0, 1.0)])
        y = smooth(x)
    elif case == "repeated":
        x, y = np.tile(x, (3, 1)), np.tile(y, 3)
    elif case == "constant":
        y = np.full(24, 7.0)
    elif case.startswith("scale"):
        y = y * float(case.split()[1])
    elif case == "one point":
        x, y = x[:1], y[:1]
    else:
        x = np.linspace(0.2, 0.8, 200)[:, None] * np.ones(3)
        y = smooth(x)
    spread = np.ptp(y) or 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gp = fit(model(x, y, kernel=kernel))
        new = np.concatenate([x[:1], design(2, 3, seed=8)])
        values = np.append(y[:1], (y.mean(), y.mean()))
        grown = gp.append(torch.from_numpy(new), torch.from_numpy(values)[:, None])
    for one, data, told in ((gp, x, y), (grown, new[:1], y[:1])):
        mean, variance = one.moments(torch.from_numpy(data))[:2]
        assert np.abs(mean.numpy() - told).max() < 1e-3 * spread
        assert (variance >= 0).all()
        assert (variance.sqrt() < 1e-3 * spread).all()
        elsewhere = one.moments(torch.from_numpy(design(50, 3, seed=5)))
        assert all(torch.isfinite(part).all() for part in elsewhere)


def test_the_objective_of_a_fit_has_one_jitter() -> None:
    """Repeated points without any jitter cannot be factored: the fit begins again with more, and says with how much."""
    x = np.tile(design(12, 2), (2, 1))
    y = smooth(x)
    problem = FitProblem(x, (y - y.mean()) / y.std(ddof=1), np.zeros(24))
    plain = FitProblem(x[:12], problem.y[:12], np.zeros(12))
    found = fit_problems([problem, plain], correlation("matern52"))
    assert found.jitter.tolist() == [1e-12, 0.0]
    for index, one in enumerate((problem, plain)):
        again = negative_log_posterior(found.theta[index], one, correlation("matern52"), jitter=found.jitter[index])
        assert float(again.value) == pytest.approx(found.value[index], rel=1e-12)
        # Where the jitter is fixed, the end of the search is a minimum.
        assert np.abs(again.gradient).max() < 0.05


def test_gradient_of_the_objective_with_jitter() -> None:
    rng = np.random.default_rng(1)
    x = rng.random((15, 2))
    problem = FitProblem(x, rng.normal(size=15), rng.uniform(0.0, 1e-2, 15))
    theta = np.array([-1.0, -0.5, 0.3])

    def value(at: np.ndarray) -> float:
        return float(negative_log_posterior(at, problem, correlation("matern52"), jitter=1e-2).value)

    steps = 1e-6 * np.eye(3)
    differences = [(value(theta + step) - value(theta - step)) / 2e-6 for step in steps]
    gradient = negative_log_posterior(theta, problem, correlation("matern52"), jitter=1e-2).gradient
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6)


def test_an_appended_point_that_needs_more_jitter_gets_it() -> None:
    """Without the first jitter a repeated point makes the matrix singular: all of it is factored anew."""
    x = design(10, 2)
    gp = model(x, smooth(x), noise=1e-17).with_hyperparameters(Hyperparameters.default(2))
    assert gp.jitter[0] == 0.0
    grown = gp.append(torch.from_numpy(x[:2]), torch.from_numpy(smooth(x[:2]))[:, None])
    assert grown.jitter[0] == 1e-12
    fresh = model(np.concatenate([x, x[:2]]), smooth(np.concatenate([x, x[:2]])), noise=1e-17)
    other = fresh.with_hyperparameters(Hyperparameters.default(2))
    other._standardization = gp.standardization
    at = torch.from_numpy(design(30, 2, seed=4))
    torch.testing.assert_close(grown.moments(at).mean, other.moments(at).mean, rtol=1e-6, atol=1e-6)


def test_copies_do_not_make_the_model_sure_of_itself() -> None:
    """Copies of points agree exactly. As a share of the outputscale the jitter would make that small."""
    x = design(20, 2)
    alone, doubled = fit(model(x, smooth(x))), fit(model(np.tile(x, (4, 1)), np.tile(smooth(x), 4)))
    ratio = doubled.hyperparameters.outputscale[0] / alone.hyperparameters.outputscale[0]
    assert ratio == pytest.approx(1.0, rel=0.15)


def test_in_given_units_jitter_is_a_share_of_the_prior_variance() -> None:
    x = design(20, 2)
    for scale in (1e-12, 1e12):
        units = Standardization(0.0, 1.0, np.zeros(2), np.ones(2))
        hyper = Hyperparameters.shared(2, lengthscale=0.4, outputscale=scale**2)
        gp = model(x, scale * smooth(x), standardization=units).with_hyperparameters(hyper)
        assert gp.jitter[0] == JITTER
        variance = gp.moments(torch.from_numpy(x)).variance.numpy()
        np.testing.assert_allclose(variance, JITTER * scale**2, rtol=0.05)


def valley(x: np.ndarray) -> np.ndarray:
    u = 4.0 * x - 2.0
    return -(100.0 * (u[:, 1:] - u[:, :-1] ** 2) ** 2 + (1.0 - u[:, :-1]) ** 2).sum(axis=1)


def cluster_and_design() -> tuple[np.ndarray, np.ndarray]:
    """Sixty points over the cube and forty within 1e-3 of the top of Rosenbrock's valley, as a search leaves them."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.random((60, 4)), 0.75 + 1e-3 * rng.normal(size=(40, 4))]), rng.normal(size=100)


@pytest.mark.parametrize("scatter", [0.0, 1e-8, 1e-6, 1e-4])
def test_scatter_that_nobody_declared_does_not_spoil_the_model(scatter: float) -> None:
    """With the first jitter alone, scatter of 1e-4 makes the lengthscales half as long, as the next test shows."""
    x, noise = cluster_and_design()
    spread = valley(x[:60]).std()
    gp = fit(model(x, valley(x) + scatter * spread * noise))
    assert gp.jitter[0] == {0.0: 1e-12, 1e-8: 1e-12, 1e-6: 1e-12, 1e-4: 1e-8}[scatter]
    clean = fit(model(x, valley(x)))
    ratio = gp.hyperparameters.lengthscale[0] / clean.hyperparameters.lengthscale[0]
    assert ratio.min() > 0.7
    at = design(500, 4, seed=9)
    errors = [float(np.std(one.moments(torch.from_numpy(at)).mean.numpy() - valley(at))) for one in (gp, clean)]
    assert errors[0] < 1.2 * errors[1]


def test_with_the_first_jitter_alone_scatter_would_spoil_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x, noise = cluster_and_design()
    monkeypatch.setattr("eign.models.independent.fitting._CLEARLY", np.inf)
    gp = fit(model(x, valley(x) + 1e-4 * valley(x[:60]).std() * noise))
    assert gp.jitter[0] == 1e-9
    ratio = gp.hyperparameters.lengthscale[0] / fit(model(x, valley(x))).hyperparameters.lengthscale[0]
    assert ratio.max() < 0.65


def test_jitter_becomes_smaller_again_where_data_do_not_scatter() -> None:
    x, _ = cluster_and_design()
    y = valley(x)
    problem = FitProblem(x, (y - y.mean()) / y.std(ddof=1), np.zeros(100))
    found = fit_problems([problem], correlation("matern52"), jitter=1e-9, last=np.array([1e-6]))
    assert found.jitter.tolist() == [1e-9]


def test_the_likelier_jitter_is_the_one_with_the_higher_density() -> None:
    """Against the density itself at fixed hyperparameters, from far too little jitter to far too much."""
    x, noise = cluster_and_design()
    y = valley(x) + 1e-3 * valley(x[:60]).std() * noise
    problem = FitProblem(x, (y - y.mean()) / y.std(ddof=1), np.zeros(100))
    theta = np.append(np.log([1.0, 0.8, 0.8, 5.0]), np.log(5.0))
    directions = []
    for jitter in (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
        here, more, less = (
            negative_log_posterior(theta, problem, correlation("matern52"), jitter=level)
            for level in (jitter, 10.0 * jitter, 0.1 * jitter)
        )
        (step,) = likelier_jitter(np.array([jitter]), here.precision.reshape(1), here.misfit.reshape(1))
        if step > 0:
            assert more.value < here.value
        if step < 0:
            assert less.value < here.value
        directions.append(int(step))
    assert directions[:3] == [1, 1, 0]
    assert -1 in directions[3:]
