"""What a user with constraints and gradients would run instead: local searches from many starts, and global programs.

Each takes a `CountedConstrained` and evaluates it until `Finished` is raised.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import optimize
from scipy.optimize import NonlinearConstraint

from eign.arrays import Array
from eign_lab.judge.constrained.counted import CountedConstrained
from eign_lab.rivals import Finished, sobol_design

minimize: Any = optimize.minimize  # its stubs know few of the forms in which constraints and gradients may be given

Search = Callable[[CountedConstrained, Array], None]
"""A local search from a point of the cube."""


def slsqp(problem: CountedConstrained) -> None:
    """SciPy's SLSQP from the points of the design, least violated and best first, then from random ones."""
    _from_starts(problem, _by_slsqp, _designed_starts(problem))


def slsqp_random(problem: CountedConstrained) -> None:
    """SciPy's SLSQP from random points."""
    _from_starts(problem, _by_slsqp, _random_starts(problem))


def trust_constr(problem: CountedConstrained) -> None:
    """SciPy's trust-constr from random points."""
    _from_starts(problem, _by_trust_constr, _random_starts(problem))


def cobyqa(problem: CountedConstrained) -> None:
    """SciPy's COBYQA from random points; it uses no gradients."""
    _from_starts(problem, _by_cobyqa, _random_starts(problem))


def ipopt(problem: CountedConstrained) -> None:
    """IPOPT with its quasi-Newton matrix from random points."""
    _from_starts(problem, _by_ipopt, _random_starts(problem))


def _from_starts(problem: CountedConstrained, search: Search, starts: Iterator[Array]) -> None:
    while not problem.is_over:
        search(problem, next(starts))
    raise Finished


def _random_starts(problem: CountedConstrained) -> Iterator[Array]:
    rng = np.random.default_rng([problem.seed, 11])
    while True:
        yield rng.random(problem.dim)


def _designed_starts(problem: CountedConstrained) -> Iterator[Array]:
    points = list(sobol_design(problem.dim, problem.seed))
    yield from sorted(points, key=lambda u: (problem.violation(u), problem.evaluate(u).value))
    yield from _random_starts(problem)


def _by_slsqp(problem: CountedConstrained, start: Array) -> None:
    constraints: Any = [
        {"type": "ineq", "fun": lambda u: -problem.excess(u)[0], "jac": lambda u: -problem.excess(u)[1]},
        {"type": "eq", "fun": lambda u: problem.residual(u)[0], "jac": lambda u: problem.residual(u)[1]},
    ]
    present = [bool(len(problem.excess(start)[0])), bool(problem.is_equality.any())]
    minimize(
        lambda u: problem.evaluate(u).value,
        start,
        jac=lambda u: problem.evaluate(u).gradient,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * problem.dim,
        constraints=[each for each, is_there in zip(constraints, present, strict=True) if is_there],
        options={"ftol": 1e-10, "maxiter": 1000},
    )


def _by_trust_constr(problem: CountedConstrained, start: Array) -> None:
    constraint = NonlinearConstraint(
        lambda u: problem.evaluate(u).constraints,
        problem.lower,
        problem.upper,
        jac=lambda u: problem.evaluate(u).jacobian,
    )
    minimize(
        lambda u: problem.evaluate(u).value,
        start,
        jac=lambda u: problem.evaluate(u).gradient,
        method="trust-constr",
        bounds=[(0.0, 1.0)] * problem.dim,
        constraints=[constraint],
        options={"maxiter": 1000},
    )


def _by_cobyqa(problem: CountedConstrained, start: Array) -> None:
    constraint = NonlinearConstraint(lambda u: problem.evaluate(u).constraints, problem.lower, problem.upper)
    minimize(
        lambda u: problem.evaluate(u).value,
        start,
        method="COBYQA",
        bounds=[(0.0, 1.0)] * problem.dim,
        constraints=[constraint],
    )


def _by_ipopt(problem: CountedConstrained, start: Array) -> None:
    import ipyopt

    d, m = problem.dim, len(problem.lower)
    ended: list[Finished] = []

    def guarded(fill: Callable[[Array], None], out: Array) -> Any:
        """IPOPT's callbacks fill arrays; once the run is over they give zeros, and it stops soon."""
        try:
            fill(out)
        except Finished as error:
            ended.append(error)
            out[...] = 0.0
        return out

    def objective(u: Array) -> float:
        return float(guarded(lambda out: out.__setitem__(0, problem.evaluate(u).value), np.zeros(1))[0])

    rows, columns = np.divmod(np.arange(m * d), d)
    nlp = ipyopt.Problem(
        d,
        np.zeros(d),
        np.ones(d),
        m,
        np.where(np.isfinite(problem.lower), problem.lower, -2e19),
        np.where(np.isfinite(problem.upper), problem.upper, 2e19),
        (rows, columns),
        (np.empty(0, dtype=int), np.empty(0, dtype=int)),
        objective,
        lambda u, out: guarded(lambda o: np.copyto(o, problem.evaluate(u).gradient), out),
        lambda u, out: guarded(lambda o: np.copyto(o, problem.evaluate(u).constraints), out),
        lambda u, out: guarded(lambda o: np.copyto(o, problem.evaluate(u).jacobian.ravel()), out),
        ipopt_options={"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": 500},
        intermediate_callback=lambda *_: not ended,
    )
    nlp.solve(x0=start.copy())
    if ended:
        raise ended[0]


def auglag_mlsl(problem: CountedConstrained) -> None:
    """NLopt's augmented Lagrangian over MLSL with L-BFGS; a tenth of the budget for each set of multipliers."""
    import nlopt

    local = nlopt.opt(nlopt.LD_LBFGS, problem.dim)
    local.set_ftol_rel(1e-9)
    search = nlopt.opt(nlopt.GD_MLSL, problem.dim)
    search.set_local_optimizer(local)
    search.set_maxeval(max(10, problem.budget // 10))
    _by_nlopt(problem, nlopt.AUGLAG, search)


def isres(problem: CountedConstrained) -> None:
    """NLopt's ISRES, an evolution strategy with stochastic ranking; it uses no gradients."""
    import nlopt

    _by_nlopt(problem, nlopt.GN_ISRES, None)


def _by_nlopt(problem: CountedConstrained, algorithm: Any, local: Any) -> None:
    import nlopt

    rng = np.random.default_rng([problem.seed, 12])
    ended: list[Exception] = []

    while not ended:
        search = nlopt.opt(algorithm, problem.dim)

        def filled(result: Array, gradient: Array, find: Callable[[], tuple[Any, Array]], search: Any = search) -> None:
            try:
                values, slopes = find()
            except (Finished, InterruptedError) as error:  # NLopt swallows exceptions of some algorithms
                ended.append(error)
                search.force_stop()
                values, slopes = 0.0, np.zeros(1)
            result[...] = values
            if gradient.size:
                gradient[...] = slopes

        def objective(u: Array, gradient: Array, filled: Any = filled) -> float:
            result = np.zeros(1)
            filled(result, gradient, lambda: (problem.evaluate(u).value, problem.evaluate(u).gradient))
            return float(result[0])

        search.set_min_objective(objective)
        search.set_lower_bounds(0.0)
        search.set_upper_bounds(1.0)
        start = rng.random(problem.dim)
        inequalities, equations = len(problem.excess(start)[0]), int(problem.is_equality.sum())
        if inequalities:
            search.add_inequality_mconstraint(
                lambda result, u, gradient, filled=filled: filled(result, gradient, lambda: problem.excess(u)),
                np.full(inequalities, 1e-8),
            )
        if equations:
            search.add_equality_mconstraint(
                lambda result, u, gradient, filled=filled: filled(result, gradient, lambda: problem.residual(u)),
                np.full(equations, 1e-8),
            )
        if local is not None:
            search.set_local_optimizer(local)
        search.set_maxeval(10 * problem.budget)
        nlopt.srand(int(rng.integers(1, 2**31)))
        try:
            search.optimize(start)
        except (nlopt.ForcedStop, nlopt.RoundoffLimited, nlopt.runtime_error):
            continue
    raise ended[0]
