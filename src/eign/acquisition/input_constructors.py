"""How Ax and BoTorch's factories build our acquisitions from a model: the incumbent comes from its observations."""

from typing import Any

from botorch.acquisition.input_constructors import acqf_input_constructor

from eign.acquisition.value import EI, UCB, LogEI
from eign.acquisition.with_gradients import EIGN, EIg, EIgBound
from eign.models.incumbent import incumbent, stationary_incumbent
from eign.models.surrogates import Surrogate


@acqf_input_constructor(EI)
def construct_ei(
    model: Surrogate, best_f: float | None = None, xi: float = 0.0, training_data: object = None
) -> dict[str, Any]:
    """Keyword arguments of `EI`; `training_data` is what BoTorch passes, the model has its own."""
    return {**construct_log_ei(model, best_f, training_data), "xi": xi}


@acqf_input_constructor(LogEI)
def construct_log_ei(model: Surrogate, best_f: float | None = None, training_data: object = None) -> dict[str, Any]:
    """Keyword arguments of `LogEI`."""
    del training_data
    return {"model": model, "best_f": incumbent(model).best_f if best_f is None else best_f}


@acqf_input_constructor(UCB)
def construct_ucb(model: Surrogate, weight: float = 2.0, training_data: object = None) -> dict[str, Any]:
    """Keyword arguments of `UCB`."""
    del training_data
    return {"model": model, "weight": weight}


@acqf_input_constructor(EIGN, EIgBound)
def construct_two_terms(model: Surrogate, alpha: float = 0.6, training_data: object = None) -> dict[str, Any]:
    """Keyword arguments of `EIGN` and `EIgBound`, with the best value as incumbent."""
    del training_data
    best = incumbent(model)
    return {"model": model, "best_f": best.best_f, "best_grad": best.best_grad, "alpha": alpha}


@acqf_input_constructor(EIg)
def construct_ei_g(model: Surrogate, alpha: float = 0.6, training_data: object = None) -> dict[str, Any]:
    """Keyword arguments of `EIg`, with the best g as incumbent."""
    del training_data
    best = stationary_incumbent(model, alpha)
    return {"model": model, "best_f": best.best_f, "best_grad": best.best_grad, "alpha": alpha}
