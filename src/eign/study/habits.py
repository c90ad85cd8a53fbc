"""What users of other packages type, and what it is called here: errors that show what to write."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar, cast

from eign.checks import not_among

Called = TypeVar("Called", bound=Callable[..., Any])

_SEEDS: Final = dict.fromkeys(("rng", "random_state", "random_seed"), "seed=")
_DESIGN: Final = dict.fromkeys(
    ("n_startup_trials", "n_initial_points", "n_random_starts", "init_points", "n_init"),
    'options={"n_init": 8}, how many points are evaluated before there is a model',
)

ARGUMENTS: Final = {
    **_SEEDS,
    **_DESIGN,
    **dict.fromkeys(("maxiter", "maxfun", "maxfev", "max_evals", "n_calls", "n_iter", "n_trials"), "budget="),
    **dict.fromkeys(("verbose", "disp"), "progress=True, or Python's logging of the logger 'eign'"),
    **dict.fromkeys(("ftol", "gtol", "xtol", "atol", "rtol"), "tol="),
    **dict.fromkeys(("n_jobs", "n_workers"), "workers="),
    **dict.fromkeys(("hess", "hessp"), "nothing: no second derivatives are used"),
    **dict.fromkeys(("sampler", "acq_func", "acquisition_function"), "method=, one of eign.methods()"),
    **dict.fromkeys(("direction", "maximize"), "eign.minimize or eign.maximize"),
    "integrality": "rounding inside the function, with NaN for that partial derivative",
    "grad": "jac=",
    "x_init": "x0=",
    "maxtime": "timeout=, for one evaluation",
    "study_name": "storage=, the file of the study",
    "load_if_exists": "resume=",
}
"""Arguments of `minimize` and `maximize`."""

OPTIMIZER_ARGUMENTS: Final = {
    **_SEEDS,
    **_DESIGN,
    **{word: ARGUMENTS[word] for word in ("sampler", "acq_func", "acquisition_function", "study_name", "n_trials")},
    "direction": "maximize=True or False",
    "load_if_exists": "Optimizer.resume(file)",
    "resume": "Optimizer.resume(file)",
    "x0": "opt.tell(x0, y, grad), or any point that you evaluate first",
}
"""Arguments of `Optimizer`."""

OPTIMIZER_MEMBERS: Final = {
    "best_params": "opt.best.x, with names opt.box.as_dict(opt.best.x)",
    "best_value": "opt.best.y",
    "best_trial": "opt.best",
    "best_trials": "opt.best",
    "trials": "opt.history",
    "trials_dataframe": "opt.history.to_frame(opt.box.names)",
    "suggest": "opt.ask()",
    "register": "opt.tell(x, y, grad)",
    "observe": "opt.tell(x, y, grad)",
    "optimize": "eign.minimize(fun, bounds)",
    "minimize": "eign.minimize(fun, bounds)",
    "maximize": "eign.maximize(fun, bounds), or Optimizer(bounds, maximize=True)",
    "run": "eign.minimize(fun, bounds)",
    "res": "opt.best and opt.history",
    "max": "opt.best",
}
"""Members of other packages' optimizers and studies."""


def explaining(elsewhere: Mapping[str, str], *, name: str | None = None) -> Callable[[Called], Called]:
    """A function, or a constructor, that tells who uses a word of another package what it is called here."""

    def decorated(function: Called) -> Called:
        known = [word for word in inspect.signature(function).parameters if word != "self"]
        label = name or function.__name__

        @wraps(function)
        def explained(*arguments: Any, **named: Any) -> Any:
            for word in named:
                if word not in known:
                    raise TypeError(_no_argument(label, word, known, elsewhere))
            return function(*arguments, **named)

        return cast(Called, explained)

    return decorated


def _no_argument(label: str, word: str, known: list[str], elsewhere: Mapping[str, str]) -> str:
    if word in elsewhere:
        return f"{label}() has no argument {word!r}; here it is {elsewhere[word]}"
    return not_among(f"{label}() has no argument", word, known)
