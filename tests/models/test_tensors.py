"""What users of BoTorch pass to the models: it works, or the error says what to write."""

import warnings

import numpy as np
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.models.model import ModelList

from eign.models import IndependentGradientGP, JointGradientGP, SpannedGradientGP, fit
from eign.models.tensors import _say_that_double_is_used
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
    _say_that_double_is_used.cache_clear()
    yield
    _say_that_double_is_used.cache_clear()


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
