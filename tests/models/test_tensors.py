"""What users of BoTorch pass to the models: it works, or the error says what to write."""

import warnings

import numpy as np
import pytest
import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition import LogExpectedImprovement
from botorch.exceptions import InputDataWarning
from botorch.models import SingleTaskGP
from botorch.models.model import ModelList

import eign
from eign.acquisition import EI, EIGN, LogEI
from eign.models import IndependentGradientGP, JointGradientGP, SpannedGradientGP, fit
from eign.models.tensors import _say_that_double_is_used, _say_that_the_cube_is_expected
from joint_cases import observe, random_points

DIM = 2
KINDS = pytest.mark.parametrize("kind", [IndependentGradientGP, JointGradientGP, SpannedGradientGP])
READERS = {
    "posterior": lambda model, X: model.posterior(X),
    "gradient_posterior": lambda model, X: model.gradient_posterior(X),
    "moments": lambda model, X: model.moments(X),
    "append": lambda model, X: model.append(X, X[:, :1], X),
    "condition_on_observations": lambda model, X: model.condition_on_observations(X, X[:, :1]),
}


@pytest.fixture(autouse=True)
def nothing_said_yet():
    for said in (_say_that_double_is_used, _say_that_the_cube_is_expected):
        said.cache_clear()
    yield
    for said in (_say_that_double_is_used, _say_that_the_cube_is_expected):
        said.cache_clear()


@KINDS
class TestSinglePrecision:
    def test_is_said_once_at_the_line_of_the_user(self, kind):
        single = [part.float() for part in observe(8, DIM)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = kind(*single)
            kind(*single).append(*single)
        (only,) = caught
        assert "were given data in torch.float32" in str(only.message)
        assert only.filename == __file__
        assert model.posterior(single[0].double()).mean.dtype == torch.float64

    def test_is_said_of_points_too(self, kind):
        model = fit(kind(*observe(8, DIM)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                LogExpectedImprovement(model, best_f=1.0)(random_points(4, 1, DIM).float())
        ours = [each for each in caught if "were given points in torch.float32" in str(each.message)]
        assert [each.filename for each in ours] == [__file__]

    def test_nothing_is_said_of_double_precision(self, kind):
        X, Y, G = observe(8, DIM)
        kind(X, Y, G).posterior(X)  # a warning would be an error here
        assert _say_that_double_is_used.cache_info().currsize == 0


@KINDS
class TestTheUnitCube:
    @pytest.mark.parametrize("scale", [1.1, 100.0])
    def test_data_outside_are_said_once_at_the_line_of_the_user(self, kind, scale):
        X, Y, G = observe(8, DIM)
        X[0, 0] = 1.0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kind(X, Y, G).append(scale * X, Y, G)
            kind(-scale * X, Y, G)
        (only,) = caught
        assert issubclass(only.category, InputDataWarning)
        assert "X should be in the unit cube" in str(only.message)
        assert "box.to_unit(x)" in str(only.message)
        assert only.filename == __file__

    def test_its_border_is_not_exact(self, kind):
        X, Y, G = observe(8, DIM)
        X[0], X[1] = -5e-3, 1.005
        kind(X, Y, G)  # a warning would be an error here


@pytest.mark.parametrize("method", ["auto", "ei-gn", "d-log-ei"])
def test_studies_stay_in_the_unit_cube(method):
    bounds = eign.Box([(1e-6, 1e6), (1.0, 1e4), (-300.0, 5.0)], log=[0])

    def bowl(x):
        return float((x[2] - 2.0) ** 2 + x[1]), np.array([0.0, 1.0, 2 * (x[2] - 2.0)])

    eign.minimize(bowl, bounds, method=method, budget=8, seed=0)  # a warning would be an error here


@KINDS
@pytest.mark.parametrize("place", range(5))
def test_tensors_elsewhere_are_refused_by_name(kind, place):
    X, Y, G = observe(8, DIM)
    given = dict(zip(("X", "Y", "G", "Yvar", "Gvar"), (X, Y, G, Y * 0 + 1, G * 0 + 1), strict=True))
    name = list(given)[place]
    with pytest.raises(ValueError, match=f"^{name} is on the device meta; the models compute on the CPU"):
        kind(**given | {name: given[name].to("meta")})
    with pytest.raises(
        TypeError, match=rf"^{name} is a numpy.ndarray, expected a tensor: torch.as_tensor\({name}, dtype"
    ):
        kind(**given | {name: given[name].numpy()})


@KINDS
@pytest.mark.parametrize("reader", READERS)
def test_points_elsewhere_are_refused_by_every_question(kind, reader):
    model = kind(*observe(8, DIM))
    with pytest.raises(ValueError, match="on the device meta"):
        READERS[reader](model, random_points(3, DIM).to("meta"))
    with pytest.raises(TypeError, match=r"X is a numpy.ndarray, expected a tensor"):
        READERS[reader](model, random_points(3, DIM).numpy())


@KINDS
def test_variances_of_another_shape_are_refused(kind):
    X, Y, G = observe(8, DIM)
    with pytest.raises(ValueError, match=r"Yvar has shape \(8, 2\), expected that of Y, \(8, 1\)"):
        kind(X, Y, G, Yvar=torch.ones(8, 2, dtype=torch.float64))


@KINDS
class TestConditioning:
    """What is no value and no noise of one was dropped, or failed in the first posterior."""

    @pytest.mark.parametrize("names", [("G",), ("Yvar",), ("G", "Gvar")])
    def test_other_arguments_are_sent_to_append(self, kind, names):
        X, Y, G = observe(8, DIM)
        with pytest.raises(TypeError, match=rf"got {', '.join(names)}; append\(X, Y, G\)"):
            kind(X, Y, G).condition_on_observations(X[:3], Y[:3], **dict.fromkeys(names, G[:3]))

    def test_gradients_in_the_place_of_noise_are_refused(self, kind):
        X, Y, G = observe(8, DIM)
        with pytest.raises(ValueError, match=r"noise has shape \(3, 2\).*Y, \(3, 1\); .*append\(X, Y, G\)"):
            kind(X, Y, G).condition_on_observations(X[:3], Y[:3], G[:3].abs())

    @pytest.mark.parametrize("shape", [(3,), (2, 1), (4, 3, 1)])
    def test_noise_of_another_shape_is_refused(self, kind, shape):
        X, Y, G = observe(8, DIM)
        with pytest.raises(ValueError, match="noise has shape"):
            kind(X, Y, G).condition_on_observations(X[:3], Y[:3], noise=torch.ones(shape).double())

    @pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
    def test_noise_that_is_no_variance_is_refused(self, kind, wrong):
        X, Y, G = observe(8, DIM)
        noise = torch.tensor([[0.0], [wrong], [0.0]]).double()
        with pytest.raises(ValueError, match=f"noise has the variance {wrong:g}"):
            kind(X, Y, G).condition_on_observations(X[:3], Y[:3], noise=noise)

    @pytest.mark.parametrize("shape", [(), (1, 1), (3, 1), (4, 3, 1)])
    def test_noise_like_the_values_counts(self, kind, shape):
        model, (new, values) = kind(*observe(8, DIM)), (random_points(3, DIM), torch.ones(4, 3, 1).double())
        noisy = model.condition_on_observations(new, values, noise=torch.full(shape, 4.0).double()).posterior(new)
        assert (noisy.variance > model.condition_on_observations(new, values).posterior(new).variance).all()


def test_lists_are_refused_with_what_to_write():
    with pytest.raises(TypeError, match=r"X is a list, expected a tensor: torch.as_tensor\(X, dtype=torch.float64\)"):
        JointGradientGP([[0.5]], [[1.0]])


class TestForeignModels:
    def test_of_botorch_are_answered_with_its_own_fit(self):
        with pytest.raises(TypeError, match=r"SingleTaskGP is not a model that eign.models.fit fits.*fit_gpytorch_mll"):
            fit(SingleTaskGP(*observe(8, DIM)[:2]))

    def test_lists_are_fitted_one_by_one(self):
        with pytest.raises(TypeError, match=r"ModelList .*for model in models.models"):
            fit(ModelList(JointGradientGP(*observe(8, DIM))))

    @pytest.mark.parametrize("given", [None, np.ones((3, 2)), JointGradientGP])
    def test_what_is_no_model_is_answered_with_a_call(self, given):
        with pytest.raises(TypeError, match=r"eign.models.fit"):
            fit(given)


@KINDS
class TestSecondDerivatives:
    """Wrong numbers would be worse than none: the Hessian of the joint model's mean was 0."""

    QUESTIONS = (
        lambda model, x: model.posterior(x[None]).mean.sum(),
        lambda model, x: model.posterior(x[None]).variance.sum(),
        lambda model, x: model.gradient_posterior(x[None]).mean.sum(),
        lambda model, x: model.gradient_posterior(x[None]).variance.sum(),
    )

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_are_an_error(self, kind, question):
        model, x = fit(kind(*observe(8, DIM))), random_points(DIM)
        if not question(model, x.clone().requires_grad_()).requires_grad:
            assert kind is SpannedGradientGP  # which says that its posterior of the gradient has no derivatives
            return
        with pytest.raises(RuntimeError, match="first derivatives only"):
            torch.autograd.functional.hessian(lambda x: question(model, x), x)

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_the_first_ones_are_right(self, kind, question):
        model, x = fit(kind(*observe(8, DIM))), random_points(DIM).requires_grad_()
        if kind is not SpannedGradientGP or question(model, x).requires_grad:
            assert torch.autograd.gradcheck(lambda x: question(model, x), x, eps=1e-6, atol=1e-3, rtol=1e-3)


OF_POINTS = {
    **{name: READERS[name] for name in ("posterior", "gradient_posterior", "moments", "condition_on_observations")},
    "EI": lambda model, X: EI(model, 1.0)(X[:, None]),
    "EI, pending": lambda model, X: EI(model, 1.0).set_X_pending(X),
    "append": lambda model, X: model.append(X, torch.ones(len(X), 1).double(), torch.ones_like(X)),
}


@KINDS
class TestShapes:
    @pytest.mark.parametrize("dim", [1, 3])
    @pytest.mark.parametrize("name", OF_POINTS)
    def test_points_of_another_dimension(self, kind, name, dim):
        model = kind(*observe(8, DIM))
        with pytest.raises(ValueError, match=rf"has shape \(4,( 1,)? {dim}\), expected \(.*, {DIM}\)"):
            OF_POINTS[name](model, random_points(4, dim))

    def test_points_without_an_axis_for_them(self, kind):
        model, point = kind(*observe(8, DIM)), random_points(DIM)
        with pytest.raises(ValueError, match=r"has shape \(2,\), expected \(\.\.\., q, 2\).*one point is X\[None\]"):
            model.posterior(point)
        with pytest.raises(ValueError, match=r"has shape \(\), expected \(\.\.\., 2\)"):
            model.gradient_posterior(point[0])
        with pytest.raises(ValueError, match=r"has shape \(1, 1, 2\), expected \(m, 2\)"):
            model.moments(point[None, None])
        assert model.gradient_posterior(point).mean.shape == (DIM,)

    @pytest.mark.parametrize("dtype", [torch.bool, torch.complex128], ids=str)
    @pytest.mark.parametrize("name", OF_POINTS)
    def test_numbers_that_are_no_points(self, kind, name, dtype):
        model = kind(*observe(8, DIM))
        with pytest.raises(TypeError, match=rf"has the dtype {dtype}, expected real numbers"):
            OF_POINTS[name](model, torch.ones(4, DIM, dtype=dtype))

    def test_whole_numbers_are_points(self, kind):
        model = kind(*observe(8, DIM))
        corner = torch.ones(1, DIM)
        torch.testing.assert_close(model.posterior(corner.long()).mean, model.posterior(corner.double()).mean)

    def test_joint_posterior(self, kind):
        if kind is JointGradientGP:
            with pytest.raises(ValueError, match=r"has shape \(4, 3\), expected \(\.\.\., 2\)"):
                kind(*observe(8, DIM)).joint_posterior(random_points(4, 3))

    def test_a_list_is_no_tensor_for_an_acquisition(self, kind):
        with pytest.raises(TypeError, match=r"X is a list, expected a tensor: torch.as_tensor"):
            EI(kind(*observe(8, DIM)), 1.0)([[[0.1, 0.2]]])

    @pytest.mark.parametrize("best", [float("nan"), torch.ones(2), "1.0", None])
    def test_an_incumbent_is_one_number(self, kind, best):
        for acquisition in (EI, LogEI):
            with pytest.raises(ValueError, match=r"best_f=.*, expected one finite number"):
                acquisition(kind(*observe(8, DIM)), best)

    def test_the_gradient_of_an_incumbent_has_the_dimension_of_the_model(self, kind):
        if kind is not SpannedGradientGP:
            with pytest.raises(ValueError, match=r"best_grad has 3 entries, expected one for each of d = 2"):
                EIGN(kind(*observe(8, DIM)), 1.0, torch.ones(3))


@KINDS
def test_what_gpytorch_keeps_elsewhere_is_pointed_out(kind):
    model = kind(*observe(4, DIM))
    with pytest.raises(AttributeError, match=r"has no attribute 'likelihood'; eign.models.fit\(model\) fits it"):
        model.likelihood  # noqa: B018
    with pytest.raises(AttributeError, match=r"eign.models.fit\(model\) fits it"):
        fit_gpytorch_mll(model)
    assert not hasattr(model, "train_inputs")
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        model.nothing  # noqa: B018
