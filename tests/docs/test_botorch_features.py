"""The table of BoTorch's features tells the truth: every row is run against both models."""

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from botorch import acquisition as acq
from botorch.acquisition import analytic, logei
from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.multi_objective.logei import qLogExpectedHypervolumeImprovement
from botorch.acquisition.multi_step_lookahead import qMultiStepLookahead
from botorch.acquisition.objective import GenericMCObjective, ScalarizedPosteriorTransform
from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
from botorch.acquisition.proximal import ProximalAcquisitionFunction
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.cross_validation import loo_cv
from botorch.fit import fit_gpytorch_mll
from botorch.generation import MaxPosteriorSampling
from botorch.models import ModelListGP
from botorch.models.model import ModelList
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.optim import optimize_acqf, optimize_acqf_discrete, optimize_acqf_mixed
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from gpytorch.kernels import RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

import eign
from eign.models import IndependentGradientGP, JointGradientGP, fit

# BoTorch advises against some of its own classes, and warns where a search ends at rounding errors.
pytestmark = pytest.mark.filterwarnings("ignore")

PAGE = Path(__file__).parents[2] / "docs/botorch_features.md"
ROWS = dict(re.findall(r"^\| `([^`]+)`[^|]*\| (yes|no) \|", PAGE.read_text(), re.MULTILINE))
MODELS = {"joint": JointGradientGP, "independent": IndependentGradientGP}
Model = JointGradientGP | IndependentGradientGP

torch.manual_seed(0)
CUBE = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
X = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(10, dtype=torch.float64)
PROBLEM = eign.problems.get("branin-2")
POINTS = PROBLEM.bounds.from_unit(X.numpy())
VALUES, SLOPES = PROBLEM.evaluate(POINTS)
Y, G = torch.tensor(VALUES)[:, None], torch.tensor(PROBLEM.bounds.times_unit_scale(SLOPES, POINTS))
BEST = float(Y.max())
SAMPLER = SobolQMCNormalSampler(torch.Size([16]), seed=0)


def found(acquisition: acq.AcquisitionFunction, q: int = 1, **settings: object) -> bool:
    """Whether `optimize_acqf` returns points of the cube with a finite value; a few steps of its search are enough."""
    torch.manual_seed(1)
    x, value = optimize_acqf(acquisition, CUBE, q=q, num_restarts=2, raw_samples=8, options={"maxiter": 3}, **settings)
    return bool(x.shape == (q, 2) and ((x >= 0) & (x <= 1)).all() and torch.isfinite(value).all())


def log_ei(model: Model, **settings: object) -> acq.AcquisitionFunction:
    return acq.LogExpectedImprovement(model, best_f=BEST, **settings)


def q_log_ei(model: Model, **settings: object) -> acq.AcquisitionFunction:
    return logei.qLogExpectedImprovement(model, **{"best_f": BEST, "sampler": SAMPLER, **settings})


def second_derivatives_agree(model: Model) -> bool:
    """With central differences of the first, to three digits."""
    x = torch.tensor([0.31, 0.62], dtype=torch.float64)

    def mean(x: Tensor) -> Tensor:
        return model.posterior(x[None]).mean.sum()

    def slope(x: Tensor) -> Tensor:
        x = x.clone().requires_grad_()
        return torch.autograd.grad(mean(x), x)[0]

    steps = 1e-5 * torch.eye(2, dtype=torch.float64)
    numeric = torch.stack([(slope(x + step) - slope(x - step)) / 2e-5 for step in steps])
    return torch.allclose(torch.autograd.functional.hessian(mean, x), numeric, rtol=1e-3, atol=1e-3)


def state_is_taken_over(model: Model) -> bool:
    other = type(model)(X, Y, G)
    other.load_state_dict(model.state_dict())
    return torch.equal(other.posterior(CHOICES).mean, model.posterior(CHOICES).mean)


def two_outputs(model: Model) -> ModelList:
    return ModelList(model, fit(type(model)(X, -Y, -G)))


def hypervolume(model: Model) -> acq.AcquisitionFunction:
    reference = torch.tensor([-300.0, -300.0], dtype=torch.float64)
    partitioning = FastNondominatedPartitioning(reference, Y=torch.cat([Y, -Y], -1))
    return qLogExpectedHypervolumeImprovement(two_outputs(model), reference, partitioning)


def ei_gn(model: Model) -> acq.AcquisitionFunction:
    return eign.acquisition.EIGN(model, best_f=BEST, best_grad=G[Y.argmax()], alpha=0.01)


CHOICES = torch.rand(20, 2, dtype=torch.float64)
FEATURES: dict[str, Callable[[Model], object]] = {
    "ExpectedImprovement": lambda m: found(acq.ExpectedImprovement(m, best_f=BEST)),
    "LogExpectedImprovement": lambda m: found(log_ei(m)),
    "LogProbabilityOfImprovement": lambda m: found(analytic.LogProbabilityOfImprovement(m, best_f=BEST)),
    "UpperConfidenceBound": lambda m: found(acq.UpperConfidenceBound(m, beta=4.0)),
    "PosteriorMean": lambda m: found(acq.PosteriorMean(m)),
    "LogNoisyExpectedImprovement": lambda m: found(analytic.LogNoisyExpectedImprovement(m, X_observed=X)),
    "qLogExpectedImprovement": lambda m: found(q_log_ei(m), q=2) and found(q_log_ei(m, X_pending=X[:2])),
    "qLogNoisyExpectedImprovement": lambda m: found(
        logei.qLogNoisyExpectedImprovement(m, X_baseline=X, sampler=SAMPLER, prune_baseline=True), q=2
    ),
    "qUpperConfidenceBound": lambda m: found(acq.qUpperConfidenceBound(m, beta=4.0, sampler=SAMPLER), q=2),
    "qKnowledgeGradient": lambda m: found(acq.qKnowledgeGradient(m, num_fantasies=4)),
    "qMultiStepLookahead": lambda m: found(
        qMultiStepLookahead(m, batch_sizes=[1], num_fantasies=[2]), q=3, return_full_tree=True
    ),
    "qMaxValueEntropy": lambda m: found(acq.qMaxValueEntropy(m, candidate_set=CHOICES)),
    "qJointEntropySearch": lambda m: found(
        qJointEntropySearch(m, CHOICES[:3], torch.full((3, 1), BEST + 1.0, dtype=torch.float64))
    ),
    "qPredictiveEntropySearch": lambda m: found(qPredictiveEntropySearch(m, CHOICES[:3])),
    "qNegIntegratedPosteriorVariance": lambda m: found(qNegIntegratedPosteriorVariance(m, mc_points=CHOICES)),
    "MaxPosteriorSampling": lambda m: (
        MaxPosteriorSampling(m, replacement=False)(CHOICES, num_samples=3).shape == (3, 2)
    ),
    "PathwiseThompsonSampling": lambda m: found(PathwiseThompsonSampling(m)),
    "ProximalAcquisitionFunction": lambda m: found(ProximalAcquisitionFunction(q_log_ei(m), torch.ones(2).double())),
    "optimize_acqf": lambda m: (
        found(q_log_ei(m), q=2, sequential=True)
        and found(log_ei(m), fixed_features={0: 0.5})
        and found(log_ei(m), inequality_constraints=[(torch.tensor([0, 1]), torch.ones(2).double(), 0.5)])
    ),
    "optimize_acqf_mixed": lambda m: (
        optimize_acqf_mixed(
            log_ei(m), CUBE, q=1, num_restarts=2, raw_samples=16, fixed_features_list=[{0: 0.0}, {0: 1.0}]
        )[0][0, 0].item()
        in (0.0, 1.0)
    ),
    "optimize_acqf_discrete": lambda m: (
        (optimize_acqf_discrete(log_ei(m), q=1, choices=CHOICES)[0] == CHOICES).all(dim=1).any()
    ),
    "ScalarizedPosteriorTransform": lambda m: torch.allclose(
        m.posterior(CHOICES, posterior_transform=ScalarizedPosteriorTransform(torch.tensor([-1.0]).double())).mean,
        -m.posterior(CHOICES).mean,
    ),
    "GenericMCObjective": lambda m: found(
        q_log_ei(m, best_f=-5.0, objective=GenericMCObjective(lambda s, X=None: -((s[..., 0] - 1) ** 2))), q=2
    ),
    "ModelList": lambda m: found(
        logei.qLogExpectedImprovement(
            two_outputs(m),
            best_f=BEST,
            objective=GenericMCObjective(lambda s, X=None: s[..., 0]),
            constraints=[lambda s: s[..., 1] - 5],
        ),
        q=2,
    ),
    "qLogExpectedHypervolumeImprovement": lambda m: found(hypervolume(m), q=2),
    "ModelListGP": lambda m: ModelListGP(m, m).posterior(X).mean.shape == (10, 2),
    "condition_on_observations": lambda m: torch.allclose(
        m.condition_on_observations(CHOICES[:2], Y[:2]).posterior(CHOICES[:2]).mean, Y[:2], rtol=1e-2, atol=1e-2
    ),
    "fantasize": lambda m: m.fantasize(X[:2], SAMPLER).posterior(X).mean.shape == (16, 10, 1),
    "posterior(observation_noise=True)": lambda m: (
        m.posterior(CHOICES, observation_noise=True).variance >= m.posterior(CHOICES).variance
    ).all(),
    "copy.deepcopy": lambda m: torch.equal(copy.deepcopy(m).posterior(CHOICES).mean, m.posterior(CHOICES).mean),
    "pickle": lambda m: torch.equal(pickle.loads(pickle.dumps(m)).posterior(CHOICES).mean, m.posterior(CHOICES).mean),
    "eign.acquisition.EIGN": lambda m: found(ei_gn(m)),
    "eign.acquisition.EIGN, sequential=True": lambda m: found(ei_gn(m), q=2, sequential=True),
    "eign.acquisition.EIGN, q > 1": lambda m: found(ei_gn(m), q=2),
    "fit_gpytorch_mll": lambda m: fit_gpytorch_mll(ExactMarginalLogLikelihood(m.likelihood, m)) is not None,
    "state_dict": state_is_taken_over,
    "train_inputs": lambda m: m.train_inputs is not None,
    "loo_cv": lambda m: loo_cv(m) is not None,
    "input_transform": lambda m: type(m)(X, Y, G, input_transform=Normalize(2)) is not None,
    "outcome_transform": lambda m: type(m)(X, Y, G, outcome_transform=Standardize(1)) is not None,
    "gpytorch.kernels": lambda m: type(m)(X, Y, G, kernel=RBFKernel()) is not None,
    "batches of training data": lambda m: (
        type(m)(X.expand(2, 10, 2), Y.expand(2, 10, 1), G.expand(2, 10, 2)) is not None
    ),
    "several outputs": lambda m: type(m)(X, Y.expand(10, 2), G) is not None,
    "single precision": lambda m: m.to(torch.float32).posterior(X.float()).mean.dtype == torch.float32,
    "tensors on a GPU": lambda m: m.posterior(X.to("meta")).mean.device.type == "meta",
    "torch.func.vmap": lambda m: torch.func.vmap(lambda x: m.posterior(x[None]).mean.sum())(X).shape == (10,),
    "second derivatives": second_derivatives_agree,
}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return fit(MODELS[request.param](X, Y, G))


def works(feature: Callable[[Model], object], model: Model) -> bool:
    try:
        return bool(feature(model))
    except Exception:
        return False


def test_every_row_is_run() -> None:
    assert set(ROWS) == set(FEATURES)


@pytest.mark.parametrize("name", FEATURES)
def test_the_row_is_true(name: str, model: Model) -> None:
    assert works(FEATURES[name], model) == (ROWS[name] == "yes")
