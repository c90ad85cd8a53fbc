"""Objectives from torch, JAX and differences: exact gradients, honest costs, errors that say what to do."""

import pickle
import warnings

import numpy as np
import pytest
import torch

import eign
from eign.integrations.autodiff import from_finite_differences, from_jax, from_torch

jnp = pytest.importorskip("jax.numpy")
import jax  # noqa: E402

X = np.array([0.3, -1.2])


def wavy_torch(x):
    return torch.sin(3 * x[0]) * torch.exp(x[1]) + x[1] ** 2


def wavy_jax(x):
    return jnp.sin(3 * x[0]) * jnp.exp(x[1]) + x[1] ** 2


def wavy(x):
    return np.sin(3 * x[0]) * np.exp(x[1]) + x[1] ** 2


def slope(x):
    return np.array([3 * np.cos(3 * x[0]), np.sin(3 * x[0])]) * np.exp(x[1]) + [0.0, 2 * x[1]]


@pytest.mark.parametrize("objective", [from_torch(wavy_torch), from_jax(wavy_jax), from_jax(jax.jit(wavy_jax))])
def test_value_and_gradient_have_all_digits(objective):
    value, gradient = objective(X)
    assert isinstance(value, float)
    assert value == pytest.approx(wavy(X), rel=1e-14)
    # Double precision: single would be off by 1e-7.
    np.testing.assert_allclose(gradient, slope(X), rtol=1e-13)
    assert gradient.dtype == np.float64


@pytest.mark.parametrize("scheme", ["forward", "central"])
@pytest.mark.parametrize("x", [1e-6, 2e-6, 0.5, 0.9, 1.0])
def test_long_steps_on_a_log_scale_stay_in_the_box(scheme, x):
    called = []
    box = eign.Box([(1e-6, 1.0)], log=[0])
    objective = from_finite_differences(lambda p: called.append(p[0]) or p[0], box, scheme=scheme, step=0.1)
    _, gradient = objective(np.array([x]))
    assert all(1e-6 <= point <= 1.0 for point in called)
    assert gradient[0] == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(("make", "module"), [(from_torch, torch), (from_jax, jnp)])
def test_dicts_and_further_arguments(make, module):
    objective = make(lambda p, factor: factor * module.exp(p["rate"]) + p["width"] ** 3)
    value, gradient = objective({"rate": 0.5, "width": 2.0, "unused": 1.0}, 2.0)
    assert value == pytest.approx(2 * np.exp(0.5) + 8)
    assert gradient == pytest.approx({"rate": 2 * np.exp(0.5), "width": 12.0, "unused": 0.0})


@pytest.mark.parametrize(("make", "module"), [(from_torch, torch), (from_jax, jnp)])
def test_they_serve_minimize(make, module):
    box = eign.Box({"a": (-1.0, 3.0), "b": (1e-3, 1e1)}, log=["b"])
    objective = make(lambda p: (p["a"] - 1) ** 2 + module.log(p["b"]) ** 2)
    bounds = {"a": (-1.0, 3.0), "b": (1e-3, 1e1)}
    result = eign.minimize(objective, bounds, method="l-bfgs", budget=25, seed=0)
    assert result.fun < 1e-6
    assert box.as_dict(result.x) == pytest.approx({"a": 1.0, "b": 1.0}, abs=1e-2)


def test_the_global_settings_of_jax_and_torch_are_left_alone():
    from_jax(wavy_jax)(X)
    assert jnp.ones(1).dtype == jnp.float32
    with torch.no_grad():
        from_torch(wavy_torch)(X)
        assert not torch.is_grad_enabled()


def test_python_control_flow_works_in_jax():
    value, gradient = from_jax(lambda x: x[0] ** 2 if x[0] > 0 else -x[0])(X)
    assert [value, *gradient] == pytest.approx([0.09, 0.6, 0.0])


@pytest.mark.parametrize(
    ("objective", "error", "message"),
    [
        (from_torch(lambda x: 2 * x), ValueError, r"shape \(2,\), expected one number"),
        (from_torch(lambda x: x.sum().item()), TypeError, "returned float, expected a torch tensor"),
        (from_torch(lambda x: x.detach().sum()), ValueError, r"without gradient: \.item\(\)"),
        (from_jax(lambda x: 2 * x), ValueError, r"shape \(2,\), expected one number"),
        (
            from_jax(lambda x: x.sum().astype(int)),
            TypeError,
            "returned int64, expected a JAX array with one real number",
        ),
        (from_finite_differences(lambda x: 2 * x, [(-2, 2)] * 2), ValueError, r"shape \(2,\), expected one number"),
    ],
)
def test_what_is_no_scalar_with_a_gradient_is_refused(objective, error, message):
    with pytest.raises(error, match=message):
        objective(X)


@pytest.mark.parametrize("make", [from_torch, from_jax, lambda fun: from_finite_differences(fun, [(0, 1)])])
def test_something_else_than_a_function_is_refused(make):
    with pytest.raises(TypeError, match="fun: expected a function"):
        make(1.0)


def test_one_number_in_an_array_is_one_number():
    for objective in (from_torch(lambda x: x[:1] ** 2), from_jax(lambda x: x[:1] ** 2)):
        value, gradient = objective(X)
        assert [value, *gradient] == pytest.approx([0.09, 0.6, 0.0])


def test_nan_is_a_failed_evaluation_and_no_error():
    for objective in (from_torch(lambda x: torch.log(x[1])), from_jax(lambda x: jnp.log(x[1]))):
        assert np.isnan(objective(X)[0])


@pytest.mark.parametrize("objective", [from_torch(wavy_torch), from_jax(wavy_jax)])
def test_they_pickle(objective):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = pickle.loads(pickle.dumps(objective))
    assert copy(X)[0] == objective(X)[0]


class TestFiniteDifferences:
    BOUNDS = ((-2.0, 2.0), (-1.2, 1.0))

    # Truncation is step * f'' / 2 over a width of 4, and step^2 * f''' / 6; rounding is eps / step.
    @pytest.mark.parametrize(("scheme", "tolerance"), [("forward", 2e-6), ("central", 2e-8)])
    def test_accuracy(self, scheme, tolerance):
        inner = np.array([0.3, 0.4])
        value, gradient = from_finite_differences(wavy, self.BOUNDS, scheme=scheme)(inner)
        assert value == wavy(inner)
        np.testing.assert_allclose(gradient, slope(inner), rtol=tolerance)

    @pytest.mark.parametrize("scheme", ["forward", "central"])
    @pytest.mark.parametrize("x", [X, [2.0, 1.0], [-2.0, -1.2]])
    def test_cost_and_bounds(self, scheme, x):
        seen = []
        objective = from_finite_differences(lambda x: seen.append(x.copy()) or wavy(x), self.BOUNDS, scheme=scheme)
        _, gradient = objective(np.array(x, dtype=float))
        assert eign.Box(self.BOUNDS).contains(seen).all()
        assert objective.cost == {"forward": 3, "central": 5}[scheme]
        on_border = np.isin(x, [*self.BOUNDS[0], *self.BOUNDS[1]]).sum()
        assert len(seen) == objective.cost - (on_border if scheme == "central" else 0)
        # One-sided at the border, where the larger step of the central scheme counts.
        np.testing.assert_allclose(gradient, slope(np.array(x)), rtol=5e-4 if scheme == "central" else 5e-6)

    def test_log_scales_names_and_fixed_coordinates(self):
        box = {"rate": (1e-6, 1e-1), "depth": (3.0, 3.0), "far": (1e6, 1e6 + 1e-3)}
        objective = from_finite_differences(lambda p: np.log(p["rate"]) + p["far"], box)
        assert objective.cost == 3
        _, gradient = objective({"rate": 1e-5, "depth": 3.0, "far": 1e6})
        assert gradient["rate"] == pytest.approx(1e5, rel=1e-3)
        assert np.isnan(gradient["depth"])
        logarithmic = eign.Box(box, log=["rate"])
        _, gradient = from_finite_differences(lambda p: np.log(p[0]), logarithmic)(np.array([1e-5, 3.0, 1e6]))
        assert gradient[0] == pytest.approx(1e5, rel=1e-6)

    def test_a_failed_value_costs_one_call(self):
        seen = []
        objective = from_finite_differences(lambda x: seen.append(x), self.BOUNDS)
        value, gradient = objective(X)
        assert np.isnan(value)
        assert gradient is None
        assert len(seen) == 1

    def test_a_failed_neighbour_is_a_missing_component(self):
        objective = from_finite_differences(lambda x: wavy(x) if x[0] <= 0.3 else None, self.BOUNDS)
        _, gradient = objective(X)
        assert np.isnan(gradient[0])
        assert gradient[1] == pytest.approx(slope(X)[1], rel=1e-5)

    def test_the_step_can_follow_the_accuracy_of_the_function(self):
        def rounded(x):
            return round(wavy(x), 6)

        inner = np.array([0.3, 0.4])
        _, gradient = from_finite_differences(rounded, self.BOUNDS, scheme="central", step=1e-2)(inner)
        np.testing.assert_allclose(gradient, slope(inner), rtol=5e-3)

    def test_it_serves_minimize(self):
        objective = from_finite_differences(lambda x: (x[0] - 0.5) ** 2 + (x[1] + 2.0) ** 2, self.BOUNDS)
        result = eign.minimize(objective, self.BOUNDS, method="l-bfgs", budget=20, seed=1)
        assert result.x.tolist() == pytest.approx([0.5, -1.2], abs=1e-5)

    @pytest.mark.parametrize(
        ("settings", "message"), [({"scheme": "5"}, "expected one of"), ({"step": 1.0}, "share of")]
    )
    def test_settings_are_checked(self, settings, message):
        with pytest.raises(ValueError, match=message):
            from_finite_differences(wavy, self.BOUNDS, **settings)
