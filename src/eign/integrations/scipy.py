"""SciPy: eign as a method of `scipy.optimize.minimize`, which calls whatever it is given as `method`."""

from collections.abc import Callable
from typing import Any

from scipy.optimize import OptimizeResult

from eign.study import minimize


def scipy_method(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    jac: Callable[..., Any] | None = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., object] | None = None,
    hess: Any = None,  # noqa: ARG001  # second derivatives are not used
    hessp: Any = None,  # noqa: ARG001
    maxfun: int | None = None,
    disp: bool = False,
    **settings: Any,
) -> OptimizeResult:
    """The global minimum in a box, for `scipy.optimize.minimize(f, x0, method=eign.scipy_method, bounds=..., jac=...)`.

    >>> import scipy
    >>> f = lambda x: (float(x @ x), 2 * x)
    >>> options = {"method": "l-bfgs", "budget": 12, "seed": 0}
    >>> found = scipy.optimize.minimize(
    ...     f, [1.0, 1.0], method=scipy_method, jac=True, bounds=[(-1, 2)] * 2, options=options
    ... )
    >>> bool(found.fun < 1e-9)
    True

    Args:
        fun: As SciPy passes it on.
        x0: The first point that is evaluated; it counts.
        args: Further arguments of `fun` and `jac`.
        jac: The gradient. SciPy makes it from `jac=True`.
        bounds: Finite, for every coordinate: a global search needs a box.
        constraints: As SciPy's, see `eign.minimize`.
        callback: As SciPy's: called with the best point, or with the result by the name `intermediate_result`.
        hess: Not used.
        hessp: Not used.
        maxfun: What SciPy calls the budget.
        disp: Show a bar with the progress.
        settings: Whatever else `eign.minimize` takes: method, budget, seed, tol, workers, storage, options.

    Raises:
        TypeError: an option is one of SciPy's that has another name here.
        ValueError: there are no bounds.
    """
    if bounds is None:
        raise ValueError("eign searches a box: give bounds=[(low, high), ...] for every coordinate")
    if "maxiter" in settings:
        count = settings["maxiter"]
        raise TypeError(f"options: maxiter counts iterations; write options={{'budget': {count!r}}}, all evaluations")
    if disp:
        settings.setdefault("progress", True)
    if maxfun is not None:
        settings.setdefault("budget", maxfun)
    return minimize(fun, bounds, x0=x0, args=args, jac=jac, callback=callback, constraints=constraints, **settings)
