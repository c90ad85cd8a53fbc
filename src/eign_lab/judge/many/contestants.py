"""Who is compared in many dimensions. Of Adam's five step sizes the best on the tuning instance is the rival."""

from typing import Final

from eign_lab.runs.experiment import MethodSpec

_HERE: Final = "eign_lab.judge.many.programs"
STEPS: Final = (0.001, 0.003, 0.01, 0.03, 0.1)
"""Adam's, in the unit cube."""

DESCENTS: Final = (
    MethodSpec("l-bfgs-ten", f"{_HERE}:best_of_ten"),
    MethodSpec("l-bfgs-centre", f"{_HERE}:from_centre"),
    MethodSpec("l-bfgs-random", "scipy/l-bfgs-b-random"),
    MethodSpec("conjugate-gradients", f"{_HERE}:conjugate_gradients"),
    *(MethodSpec(f"adam-{step:g}", f"{_HERE}:adam", {"step": step}) for step in STEPS),
)
SEARCHES: Final = (
    MethodSpec("basin-hopping", "scipy/basin-hopping"),
    MethodSpec("mlsl", "nlopt/mlsl"),
    MethodSpec("cma-es", f"{_HERE}:cma_es"),
)
RIVALS: Final = (*DESCENTS, *SEARCHES)
SETS: Final = {"rivals": RIVALS, "programs": RIVALS, "descents": DESCENTS, "searches": SEARCHES}
