"""Every acquisition on every surrogate, for the tests that all of them must pass."""

from collections.abc import Callable

from eign.acquisition import EI, EIGN, UCB, EIg, EIgBound, LogEI, SurrogateAcquisition, incumbent, stationary_incumbent
from eign.models import IndependentGradientGP, JointGradientGP, fit
from joint_cases import observe

ALPHA = 0.6
MODELS = {"independent": IndependentGradientGP, "joint": JointGradientGP}
Model = IndependentGradientGP | JointGradientGP


def _with_best_value(cls) -> Callable[..., SurrogateAcquisition]:
    def build(model: Model, alpha: float = ALPHA) -> SurrogateAcquisition:
        best = incumbent(model)
        return cls(model, best_f=best.best_f, best_grad=best.best_grad, alpha=alpha)

    return build


def _exact(model: Model, alpha: float = ALPHA) -> EIg:
    best = stationary_incumbent(model, alpha)
    return EIg(model, best_f=best.best_f, best_grad=best.best_grad, alpha=alpha)


WITH_ALPHA: dict[str, Callable[..., SurrogateAcquisition]] = {
    "EIGN": _with_best_value(EIGN),
    "EIgBound": _with_best_value(EIgBound),
    "EIg": _exact,
}
ACQUISITIONS: dict[str, Callable[..., SurrogateAcquisition]] = {
    "EI": lambda model: EI(model, incumbent(model).best_f),
    "EI-xi": lambda model: EI(model, incumbent(model).best_f, xi=0.3),
    "LogEI": lambda model: LogEI(model, incumbent(model).best_f),
    "UCB": UCB,
    **WITH_ALPHA,
}


def surrogate(
    name: str, *, n: int = 20, d: int = 3, missing: float = 0.0, seed: int = 0, shift=0.0, scale=1.0
) -> Model:
    """A fitted model of a smooth function in the units `shift + scale y`."""
    X, Y, G = observe(n, d, seed=seed, missing=missing)
    return fit(MODELS[name](X, shift + scale * Y, scale * G))
