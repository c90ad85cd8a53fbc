"""Who is compared under constraints: one evaluation is value, constraints and all gradients, whoever looks at them."""

from typing import Final

from eign_lab.runs.experiment import MethodSpec

_HERE: Final = "eign_lab.judge.constrained.programs"

LOCAL: Final = (
    MethodSpec("slsqp", f"{_HERE}:slsqp"),
    MethodSpec("slsqp-random", f"{_HERE}:slsqp_random"),
    MethodSpec("ipopt", f"{_HERE}:ipopt"),
    MethodSpec("trust-constr", f"{_HERE}:trust_constr"),
    MethodSpec("cobyqa", f"{_HERE}:cobyqa"),
)
GLOBAL: Final = (MethodSpec("auglag-mlsl", f"{_HERE}:auglag_mlsl"), MethodSpec("isres", f"{_HERE}:isres"))
PROGRAMS: Final = (*LOCAL, *GLOBAL)
SURROGATES: Final = (
    MethodSpec("egobox", "eign_lab.judge.constrained.surrogates:egobox"),
    MethodSpec("botorch-qlogei", "eign_lab.judge.constrained.surrogates:botorch"),
)
RIVALS: Final = (*PROGRAMS, *SURROGATES)
SETS: Final = {"rivals": RIVALS, "programs": PROGRAMS, "surrogates": SURROGATES}
