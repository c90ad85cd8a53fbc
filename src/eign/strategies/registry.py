"""The methods by name."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from eign.checks import not_among
from eign.strategies.strategy import Strategy


class Method(NamedTuple):
    """One line for the user, and where the strategy is made: `module:name`, called with `arguments`.

    The only table of methods; it is light, as the terminal lists it.
    """

    summary: str
    home: str
    arguments: tuple[str, ...] = ()


_BAYESIAN: Final = "eign.strategies.bayesian:Bayesian"

_METHODS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        "auto": Method(
            "the default: one model of f and its gradient, global and local steps", "eign.strategies.auto:Auto"
        ),
        "ei-gn": Method(
            "expected improvement with stationarity, separate GPs of f and its gradient", _BAYESIAN, ("ei-gn",)
        ),
        "ei": Method("expected improvement", _BAYESIAN, ("ei",)),
        "log-ei": Method("logarithm of expected improvement", _BAYESIAN, ("log-ei",)),
        "ei-xi": Method("expected improvement by more than xi", _BAYESIAN, ("ei-xi",)),
        "ucb": Method("upper confidence bound", _BAYESIAN, ("ucb",)),
        "ei-g": Method("exact expected improvement of f - alpha |grad f|^2", _BAYESIAN, ("ei-g",)),
        "ei-g-bound": Method("lower bound of ei-g by Monte Carlo", _BAYESIAN, ("ei-g-bound",)),
        "d-ei": Method("ei on one GP of f and its gradient", _BAYESIAN, ("ei", "joint")),
        "d-log-ei": Method("log-ei on one GP of f and its gradient", _BAYESIAN, ("log-ei", "joint")),
        "d-ei-gn": Method("ei-gn on one GP of f and its gradient", _BAYESIAN, ("ei-gn", "joint")),
        "thompson": Method("maximum of one posterior sample", _BAYESIAN, ("thompson",)),
        "cma-es": Method("covariance matrix adaptation evolution strategy", "eign.strategies.evolution:CMAES"),
        "sobol": Method("scrambled Sobol points", "eign.strategies.sampling:Sobol"),
        "random": Method("uniform random points", "eign.strategies.sampling:UniformRandom"),
        "l-bfgs": Method("multi-start L-BFGS-B on the function itself", "eign.strategies.multistart:MultistartLBFGS"),
        "slsqp": Method(
            "multi-start SLSQP on the functions themselves, under constraints",
            "eign.strategies.constrained.descent:MultistartSLSQP",
        ),
        "reinforce": Method("gradient ascent from the best point of the design", "eign.strategies.reinforce:Reinforce"),
    }
)


def methods() -> dict[str, str]:
    """The names of all methods, with one line each.

    >>> methods()["sobol"]
    'scrambled Sobol points'
    """
    return {name: method.summary for name, method in _METHODS.items()}


def strategy(method: str) -> Strategy:
    """The strategy of this name; its packages are imported here.

    Raises:
        ValueError: there is no such method.
    """
    given: object = method
    if not isinstance(given, str) or given not in _METHODS:
        raise ValueError(not_among("there is no method", given, _METHODS))
    _, home, arguments = _METHODS[given]
    module, name = home.split(":")
    make = cast(Callable[..., Strategy], getattr(import_module(module), name))
    return make(*arguments)


def check_handled(method: str, *, constraints: bool, linear: bool) -> None:
    """Refuse a method that cannot do with such constraints.

    Raises:
        ValueError: it cannot; the error names those that can.
    """
    if _is_able(strategy(method), constraints=constraints, linear=linear):
        return
    given = {"constraints": constraints, "linear constraints": linear}
    needed = " and ".join(kind for kind, is_given in given.items() if is_given)
    able = [name for name in _METHODS if _is_able(strategy(name), constraints=constraints, linear=linear)]
    raise ValueError(f"method {method!r} takes no {needed}; these do: {', '.join(able) or 'none yet'}")


def _is_able(method: Strategy, *, constraints: bool, linear: bool) -> bool:
    return (method.handles_constraints or not constraints) and (method.handles_linear or not linear)
