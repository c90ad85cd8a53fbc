"""Who is compared on BBOB.

L-BFGS-B, basin-hopping, MLSL and TikTak have the better of two settings on the tuning instances; StoGO and CMA-ES are
as they come.
"""

from typing import Final

from eign_lab.runs.experiment import MethodSpec

# By default, multi-start L-BFGS-B ends a descent at 1e-9 of what its start had to gain. COCO asks for more digits:
# descents that go on until the line search fails reach a tenth of all targets more.
_TO_THE_END: Final = {"ftol": 0.0, "gtol": 0.0}

DESCENTS: Final = ("l-bfgs", "l-bfgs-random")
"""The labels of L-BFGS-B, with a design and without."""
PROGRAMS: Final = (
    MethodSpec("l-bfgs", "scipy/l-bfgs-b", _TO_THE_END),
    MethodSpec("l-bfgs-random", "scipy/l-bfgs-b-random", _TO_THE_END),
    MethodSpec("mlsl", "nlopt/mlsl"),
    MethodSpec("stogo", "nlopt/stogo"),
    MethodSpec("basin-hopping", "scipy/basin-hopping"),
    MethodSpec("tiktak", "optimagic/tiktak"),
    MethodSpec("cma-es", "pycma/cma-es"),
)
MODELS: Final = (MethodSpec("d-log-ei", "d-log-ei"),)
RIVALS: Final = (*PROGRAMS, *MODELS)
SETS: Final = {"rivals": RIVALS, "programs": PROGRAMS, "models": MODELS}
