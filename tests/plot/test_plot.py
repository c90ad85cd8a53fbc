"""Pictures show the right numbers: read back from the artists that were drawn."""

from functools import cache

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose, assert_array_equal

import eign
from eign import plot
from eign.plot.bands import mean_and_error, regret_band, regrets
from eign.plot.regions import high_regions
from eign.plot.style import COLOURS, lines, shades
from eign.study.handle import handle

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def bowl(x):
    return float((x[0] - 0.5) ** 2 + 2.0 * (x[-1] - 1.0) ** 2), np.array([2 * (x[0] - 0.5), 4 * (x[-1] - 1.0)])


@cache
def told(method="d-log-ei", *, sign=1.0, n=8):
    """An optimizer that no test may change."""
    optimizer = eign.Optimizer([(-1.0, 2.0), (0.0, 4.0)], method=method, seed=3, maximize=sign < 0)
    for _ in range(n):
        x = optimizer.ask()
        value, gradient = bowl(x)
        optimizer.tell(x, sign * value, sign * gradient)
    return optimizer


def line(axes, label):
    return next(artist for artist in axes.get_lines() if artist.get_label() == label)


@pytest.mark.parametrize("draw", [plot.slice, plot.contour])
class TestWhatIsNoOptimizer:
    @pytest.mark.parametrize("run", [eign.minimize, eign.maximize])
    def test_a_result_is_answered_with_lines_that_work(self, draw, run):
        sign = 1.0 if run is eign.minimize else -1.0
        bounds = [(-1.0, 2.0), (0.0, 4.0)]
        result = run(lambda x: tuple(sign * part for part in bowl(x)), bounds, budget=6, method="random", seed=0)
        with pytest.raises(TypeError, match="the result of a run has its evaluations and no model") as caught:
            draw(result)
        scope = {"eign": eign, "bounds": bounds, "result": result}
        exec("\n".join(line.strip() for line in str(caught.value).splitlines()[1:3]), scope)
        optimizer = scope["optimizer"]
        assert_array_equal(optimizer.best.x, result.x)
        draw(optimizer)

    def test_a_study_is_to_be_opened(self, draw):
        with pytest.raises(TypeError, match=r"eign.Optimizer.view\('run.study'\)"):
            draw("run.study")

    def test_anything_else_is_named(self, draw):
        with pytest.raises(TypeError, match=r"expected an eign.Optimizer, got list"):
            draw([1.0, 2.0])


class TestOutlook:
    def test_says_where_the_next_point_will_be_and_changes_nothing(self):
        optimizer = told.__wrapped__()
        before = handle(optimizer).state
        outlook = optimizer.outlook()
        assert handle(optimizer).state is before
        assert_array_equal(outlook.x, optimizer.ask())

    @pytest.mark.parametrize("method", ["ei", "ei-gn", "d-log-ei", "thompson"])
    def test_predicts_what_was_told_whatever_the_sign(self, method):
        mirrored = [told(method, sign=sign).outlook() for sign in (1.0, -1.0)]
        points = told(method).history.x
        minimised, maximised = (outlook.predict(points) for outlook in mirrored)
        # Noise-free data are interpolated up to the nugget, 1e-6 of their variance.
        assert_allclose(minimised.mean, [bowl(x)[0] for x in points], atol=0.02)
        assert_allclose(minimised.mean, -maximised.mean, atol=1e-9)
        assert_allclose(minimised.deviation, maximised.deviation, atol=1e-9)
        assert (minimised.deviation < 0.05).all()

    def test_the_acquisition_is_largest_where_the_method_looks(self):
        outlook = told("ei-gn").outlook()
        others = np.random.default_rng(0).uniform([-1.0, 0.0], [2.0, 4.0], size=(500, 2))
        assert outlook.acquisition(outlook.x[None])[0] >= outlook.acquisition(others).max() - 1e-9

    @pytest.mark.parametrize("method", ["ei", "ei-gn", "d-log-ei", "ei-g"])
    def test_one_point_has_numbers(self, method):
        outlook = told(method).outlook()
        single, many = outlook.predict(outlook.x), outlook.predict(outlook.x[None])
        assert isinstance(single.mean, float)
        assert isinstance(single.deviation, float)
        assert single == (many.mean[0], many.deviation[0])
        assert outlook.acquisition(outlook.x) == outlook.acquisition(outlook.x[None])[0]

    def test_one_point_may_be_a_dict(self):
        limits = {"c": (None, 0.0)}
        optimizer = eign.Optimizer({"a": (0.0, 1.0), "b": (2.0, 2.0)}, method="d-log-ei", seed=3, constraints=limits)
        for a in (0.0, 0.3, 1.0):
            optimizer.tell({"a": a}, a**2, {"a": 2 * a}, constraints={"c": a - 0.5})
        outlook = optimizer.outlook()
        named, plain = {"a": 0.7}, [0.7, 2.0]
        assert outlook.predict(named) == outlook.predict(plain)
        assert outlook.predict_constraints(named) == outlook.predict_constraints(plain)
        assert outlook.acquisition(named) == outlook.acquisition(plain)
        with pytest.raises(ValueError, match="this box has no names"):
            told("ei").outlook().predict(named)

    def test_thompson_sampling_has_no_acquisition(self):
        outlook = told("thompson").outlook()
        assert outlook.acquisition(outlook.x[None]) is None

    @pytest.mark.parametrize(("method", "n", "reason"), [("sobol", 3, "'sobol' has no surrogate"), ("ei", 0, "told")])
    def test_without_a_model_there_is_none(self, method, n, reason):
        with pytest.raises(ValueError, match=reason):
            told(method, n=n).outlook()


class TestConvergence:
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_draws_values_and_the_best_of_them(self, sign):
        optimizer = told("sobol", sign=sign)
        axes = plot.convergence(optimizer)
        values = optimizer.history.y
        assert_array_equal(line(axes, "value").get_ydata(), values)
        expected = np.minimum.accumulate(values) if sign > 0 else np.maximum.accumulate(values)
        assert_array_equal(line(axes, "best so far").get_ydata(), expected)
        assert_array_equal(line(axes, "best so far").get_xdata(), np.arange(1, 9))

    def test_a_result_knows_its_direction(self):
        def negative(x):
            value, gradient = bowl(x)
            return -value, -gradient

        result = eign.maximize(negative, [(-1, 2), (0, 4)], method="sobol", seed=0, budget=6)
        best = line(plot.convergence(result), "best so far").get_ydata()
        assert best[-1] == result.fun == result.history.y.max()

    def test_failed_evaluations_leave_a_gap_and_count(self):
        axes = plot.convergence([np.nan, 2.0, np.inf, 1.0], optimum=0.0)
        assert_array_equal(line(axes, "value").get_ydata(), [np.nan, 2.0, np.nan, 1.0])
        assert_array_equal(line(axes, "best so far").get_ydata(), [np.nan, 2.0, 2.0, 1.0])
        assert_array_equal(line(axes, "optimum").get_ydata(), [0.0, 0.0])

    def test_regret_is_the_distance_to_the_optimum_on_a_log_scale(self):
        axes = plot.convergence([5.0, 3.0, 4.0], optimum=1.0, regret=True)
        assert axes.get_yscale() == "log"
        assert_allclose(line(axes, "best so far").get_ydata(), [4.0, 2.0, 2.0])
        with pytest.raises(ValueError, match="needs the optimum"):
            plot.convergence([1.0], regret=True)

    def test_a_few_bad_values_do_not_flatten_the_curve(self):
        values = np.append(1e6, np.linspace(3.0, 1.0, 9))
        for order in (values, values[::-1]):
            low, high = plot.convergence(order).get_ylim()
            assert low < 1.0 < 2.0 < high < 10.0
        low, high = plot.convergence(-values, maximize=True).get_ylim()
        assert -10.0 < low < -2.0 < -1.0 < high

    @pytest.mark.parametrize("maximize", [False, True])
    def test_all_values_are_inside(self, maximize):
        sign = -1.0 if maximize else 1.0
        for values in ([3.0, 2.0, 1.0], [100.0, 3.0, 2.0, 1.0], [1.0], [2.0] * 6, [9.0, 5.0, 1.0, np.nan, 4.0, 2.0]):
            axes = plot.convergence(sign * np.array(values), maximize=maximize)
            low, high = axes.get_ylim()
            assert low < np.nanmin(sign * np.array(values)) <= np.nanmax(sign * np.array(values)) < high
            assert "picture" not in axes.get_legend_handles_labels()[1]

    @pytest.mark.parametrize("feasible", [[True, False, True, False], [False, False, True, False], [False] * 4])
    def test_crosses_are_inside_too(self, feasible):
        run = {"history": eign.Observations([[0.0]] * 4, [3.0, 0.0, 2.0, 6.0]), "feasible": np.array(feasible)}
        low, high = plot.convergence(run).get_ylim()
        assert low < 0.0 < 6.0 < high

    def test_arrows_stand_for_what_is_cut(self):
        values = np.array([1e6, 3.0, -1e5, 2.5, 2.0, 1.5, 1.0, 2.0])
        run = {"history": eign.Observations([[0.0]] * 8, values), "feasible": values >= 0}
        axes = plot.convergence(run)
        assert_array_equal(line(axes, "above the picture").get_xdata(), [1])
        assert_array_equal(line(axes, "below the picture").get_xdata(), [3])
        low, high = axes.get_ylim()
        assert 0.0 < low < 1.0 < 3.0 < high < 4.0

    def test_there_are_no_half_evaluations(self):
        ticks = plot.convergence([3.0, 2.0, 1.0]).get_xticks()
        assert_array_equal(ticks, np.round(ticks))

    def test_axes_in_axes_out(self):
        _, axes = plt.subplots()
        assert plot.convergence([1.0, 2.0], axes=axes) is axes
        assert plot.gradient_norm([1.0, 2.0], axes=axes) is axes
        assert plot.compare({"a": [1.0, 2.0]}, axes=axes) is axes
        _, (left, top, bottom) = plt.subplots(3, 1)
        assert plot.contour(told(), axes=left, resolution=5) is left
        assert plot.slice(told(), axes=[top, bottom]) == (top, bottom)


class TestGradientNorm:
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_norms_are_of_the_unit_cube_and_the_line_is_at_the_best(self, sign):
        optimizer = told("sobol", sign=sign)
        axes = plot.gradient_norm(optimizer)
        norms = np.linalg.norm(optimizer.history.grad * [3.0, 4.0], axis=1)
        assert axes.get_yscale() == "log"
        assert_allclose(line(axes, "evaluated").get_ydata(), norms, rtol=1e-12)
        rows = [int(np.argmin(sign * optimizer.history.y[: k + 1])) for k in range(8)]
        assert_allclose(line(axes, "at the best so far").get_ydata(), norms[rows], rtol=1e-12)

    def test_of_a_history_they_are_in_user_units_and_gaps_stay_gaps(self):
        history = eign.Observations([[0.0, 0.0]] * 3, [3.0, 2.0, 1.0], [[3.0, 4.0], None, [0.0, 0.0]])
        drawn = line(plot.gradient_norm(history), "evaluated").get_ydata()
        assert_array_equal(drawn, [5.0, np.nan, np.nan])


class TestCompare:
    def test_mean_and_one_standard_error_of_the_best(self):
        values = np.array([[1.0, 3.0, 2.0], [2.0, 1.0, 5.0], [0.0, 2.0, 2.0]])
        axes = plot.compare({"a": values}, maximize=True, optimum=6.0)
        best = np.maximum.accumulate(values, axis=1)
        assert_allclose(line(axes, "a").get_ydata(), best.mean(axis=0))
        band = axes.collections[0].get_paths()[0].vertices
        error = best.std(axis=0, ddof=1) / np.sqrt(3)
        for k in range(3):
            heights = band[band[:, 0] == k + 1, 1]
            assert_allclose([heights.min(), heights.max()], [(best.mean(0) - error)[k], (best.mean(0) + error)[k]])

    def test_equal_labels_make_one_curve_as_long_as_the_shortest_run(self):
        axes = plot.compare([[3.0, 2.0, 1.0], [5.0, 4.0], [9.0, 9.0]], labels=["a", "a", "b"])
        assert_allclose(line(axes, "a").get_ydata(), [4.0, 3.0])
        assert [artist.get_label() for artist in axes.get_lines()] == ["a", "b"]

    def test_results_and_optimizers_can_be_mixed(self):
        result = eign.minimize(bowl, [(-1, 2), (0, 4)], method="sobol", seed=0, budget=5)
        axes = plot.compare([result, told("sobol")], labels=["one", "two"])
        assert_array_equal(line(axes, "one").get_ydata(), np.minimum.accumulate(result.history.y))

    def test_regret_is_a_geometric_mean_from_the_start_asked_for(self):
        values = np.array([[0.0, 9.0, 9.9], [0.0, 6.0, 9.6]])
        axes = plot.compare({"a": values}, maximize=True, optimum=10.0, regret=True, start=2)
        assert axes.get_yscale() == "log"
        assert_array_equal(line(axes, "a").get_xdata(), [2, 3])
        assert_allclose(line(axes, "a").get_ydata(), [2.0, 0.2])

    def test_more_curves_than_colours_differ_by_their_dashes(self):
        axes = plot.compare({str(k): [1.0, 2.0] for k in range(len(COLOURS) + 1)})
        looks = {(artist.get_color(), artist.get_linestyle()) for artist in axes.get_lines()}
        assert len(looks) == len(COLOURS) + 1

    def test_labels_must_fit(self):
        with pytest.raises(ValueError, match="1 labels for 2 runs"):
            plot.compare([[1.0], [2.0]], labels=["a"])


class TestSlice:
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_mean_band_and_acquisition_are_the_optimizers(self, sign):
        optimizer = told(sign=sign)
        drawn = plot.slice(optimizer, 1, resolution=51)
        mean = line(drawn.posterior, "posterior mean")
        grid = np.column_stack([np.full(51, optimizer.best.x[0]), np.linspace(0.0, 4.0, 51)])
        assert_allclose(mean.get_xdata(), grid[:, 1], atol=1e-12)
        outlook = optimizer.outlook()
        prediction = outlook.predict(grid)
        assert_allclose(mean.get_ydata(), prediction.mean, rtol=1e-9)
        band = drawn.posterior.collections[0].get_paths()[0].vertices
        assert_allclose(band[:, 1].max(), (prediction.mean + 2 * prediction.deviation).max(), rtol=1e-9)
        assert_allclose(drawn.acquisition.get_lines()[0].get_ydata(), outlook.acquisition(grid), rtol=1e-9)

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_tangents_have_the_slope_observed(self, sign):
        optimizer = told(sign=sign)
        axes = plot.slice(optimizer, 0).posterior
        segments = np.array(next(c for c in axes.collections if isinstance(c, LineCollection)).get_segments())
        rise = (segments[:, 1] - segments[:, 0]).T
        assert_allclose(rise[1] / rise[0], optimizer.history.grad[:, 0], atol=1e-9)
        inside = (segments[:, 0, 0] > -1.0) & (segments[:, 1, 0] < 2.0)
        assert inside.any()
        assert_allclose(segments[inside].mean(axis=1)[:, 1], optimizer.history.y[inside], rtol=1e-9)

    def test_on_a_log_scale_a_tangent_follows_the_chain_rule(self):
        box = eign.Box({"rate": (0.01, 1.0), "depth": (2, 2), "width": (0.0, 1.0)}, log=["rate"])
        optimizer = eign.Optimizer(box, method="ei", seed=0)
        optimizer.tell({"rate": 0.1, "width": 0.5}, 3.0, {"rate": 20.0, "width": 1.0})
        optimizer.tell({"rate": 0.5, "width": 0.1}, 4.0)
        axes = plot.slice(optimizer, "rate", at={"rate": 0.1, "width": 0.2}).posterior
        assert axes.get_xscale() == "log"
        (segment,) = np.array(axes.collections[2].get_segments())
        decades = np.log10(segment[1, 0] / segment[0, 0])
        # dy / d log10(x) = dy/dx x log(10).
        assert_allclose((segment[1, 1] - segment[0, 1]) / decades, 20.0 * 0.1 * np.log(10.0), rtol=1e-9)
        assert axes.get_xlim() == pytest.approx((0.01, 1.0))
        with pytest.raises(ValueError, match="fixed at 2"):
            plot.slice(optimizer, "depth")

    def test_points_off_the_cut_are_paler(self):
        optimizer = told()
        centre = optimizer.history.x[0]
        dots = plot.slice(optimizer, 0, at=centre).posterior.collections[1].get_facecolors()
        away = np.abs(optimizer.history.x[:, 1] - centre[1])
        assert_array_equal(np.argsort(dots[:, 3], kind="stable")[::-1][0], 0)
        assert dots[0, 3] == pytest.approx(1.0)
        assert dots[np.argmax(away), 3] == dots[:, 3].min()

    def test_one_axes_takes_the_posterior_alone(self):
        _, axes = plt.subplots()
        drawn = plot.slice(told(), axes=axes)
        assert drawn.posterior is axes
        assert drawn.acquisition is None

    def test_bad_coordinates(self):
        with pytest.raises(ValueError, match="index below 2"):
            plot.slice(told(), 5)
        with pytest.raises(ValueError, match="expected different"):
            plot.contour(told(), (1, 1))
        with pytest.raises(ValueError, match="at has shape"):
            plot.slice(told(), at=[1.0])


class TestContour:
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_arrows_point_uphill_and_the_star_is_the_best(self, sign):
        optimizer = told(sign=sign)
        axes = plot.contour(optimizer, (1, 0), acquisition=True)
        arrows = [text for text in axes.texts if text.arrow_patch is not None]
        assert len(arrows) == 8
        width = np.array([4.0, 3.0])  # of the box, in the order of the axes
        for arrow, x, grad in zip(arrows, optimizer.history.x, optimizer.history.grad, strict=True):
            step = (np.array(arrow.xy) - np.array(arrow.xyann)) / width
            uphill = grad[[1, 0]] * width
            if all(0.01 < share < 0.99 for share in (np.array(arrow.xy) - [0.0, -1.0]) / width):
                assert_allclose(step / np.linalg.norm(step), uphill / np.linalg.norm(uphill), atol=1e-9)
            assert_array_equal(arrow.xyann, x[[1, 0]])
        star = axes.get_lines()[0]
        assert (star.get_xdata()[0], star.get_ydata()[0]) == pytest.approx(tuple(optimizer.best.x[[1, 0]]))
        assert axes.get_xlim() == (0.0, 4.0)
        assert axes.get_ylim() == (-1.0, 2.0)

    def test_brighter_is_better(self):
        maps = [plot.contour(told(sign=sign)).collections[0].get_cmap().name for sign in (1.0, -1.0)]
        assert maps == ["cividis_r", "cividis"]


class TestNumbersBehindThePictures:
    def test_mean_and_error_by_hand(self):
        mean, error = mean_and_error(np.array([2.0, 4.0, 9.0]))
        assert mean == 5.0
        assert error == pytest.approx(np.sqrt((9 + 1 + 16) / (3 * 2)))
        assert np.isnan(mean_and_error(np.array([1.0])).error)

    def test_regrets_below_rounding_are_at_the_floor(self):
        assert_allclose(regrets(np.array([10.0, 10.0 + 1e-13, 9.0]), 10.0, maximize=True), [1e-8, 1e-8, 1.0])
        with pytest.warns(UserWarning, match=r"beyond the optimum of 10, by up to 2: either it is stated wrongly"):
            assert_allclose(regrets(np.array([[7.0, 9.0, 12.0]]), 10.0), [[3.0, 1.0, 1e-8]])
        with pytest.warns(UserWarning, match="beyond the optimum"):
            assert_allclose(regrets(np.array([3.0, 1.0, -1.0]), 0.0), [3.0, 1.0, 1e-9])
        middle, low, high = regret_band(np.array([[9.0], [6.0]]), 10.0)
        spread = np.log(4.0) / np.sqrt(2.0) / np.sqrt(2.0)
        assert_allclose([middle[0], low[0], high[0]], [2.0, 2.0 / np.exp(spread), 2.0 * np.exp(spread)])

    def test_flat_curves_have_no_high_region(self):
        assert high_regions(np.ones(5), share=0.5) == []

    def test_styles_are_all_different(self):
        assert len(set(lines())) == 3 * len(COLOURS)
        assert len({style.colour for style in shades(6)}) == 6
