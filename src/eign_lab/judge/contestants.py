"""Who is compared: the method that is judged, and what a user would run instead."""

from collections.abc import Iterable, Sequence
from typing import Final

from eign_lab.judge.cases import CASES, GROUPS
from eign_lab.runs.experiment import Experiment, MethodSpec

PROGRAMS: Final = (
    MethodSpec("l-bfgs", "scipy/l-bfgs-b"),
    MethodSpec("l-bfgs-random", "scipy/l-bfgs-b-random"),
    MethodSpec("mlsl", "nlopt/mlsl"),
    MethodSpec("basin-hopping", "scipy/basin-hopping"),
    MethodSpec("dual-annealing", "scipy/dual-annealing"),
    MethodSpec("cma-es", "pycma/cma-es"),
)
MODELS: Final = tuple(MethodSpec(name, name) for name in ("d-log-ei", "d-ei-gn", "ei-gn", "log-ei"))
RIVALS: Final = (*PROGRAMS, *MODELS)

SETS: Final = {"rivals": RIVALS, "programs": PROGRAMS, "models": MODELS}


def judge_experiment(
    methods: Sequence[MethodSpec], *, groups: Iterable[int] = GROUPS, problems: Iterable[str] = ()
) -> Experiment:
    """Methods on the cases of some groups, or on those of these names."""
    names = list(problems) or [name for name, case in CASES.items() if case.group in set(groups)]
    if unknown := [name for name in names if name not in CASES]:
        raise ValueError(f"the judge has no problem {unknown[0]!r}; expected some of {', '.join(CASES)}")
    return Experiment("judge", "The judge of auto", tuple(CASES[name].spec for name in names), tuple(methods))
