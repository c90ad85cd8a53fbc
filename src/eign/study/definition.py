"""What a study is about, fixed when it begins."""

import platform
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, final

import numpy as np

from eign._version import __version__
from eign.arrays import whole_number
from eign.constraints import FEASIBILITY_TOL, Limits, LinearRows
from eign.space import Box
from eign.study.gradient_check.check import GradientCheck, checked_mode

# What definitions of earlier formats lack.
_ADDED: Final = ("budget", "constraints", "linear", "feasibility_tol")
Seed = int | np.random.Generator | np.random.RandomState | None


@cache
def _versions() -> Mapping[str, str]:
    found = {"eign": __version__, "python": platform.python_version()}
    for package in ("torch", "numpy", "scipy", "botorch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a build without metadata
            found[package] = "unknown"
    return found


@final
@dataclass(frozen=True, slots=True)
class Definition:
    """The question that a study answers.

    Attributes:
        box: The region that is searched.
        method: One of `eign.methods()`.
        seed: All randomness comes from it.
        maximize: Whether larger values are better.
        check_gradients: Whether to warn if gradients contradict the values, and to ask for points to find out.
        budget: Evaluations in all that are planned; None if nobody said.
        versions: Of the packages that began the study, for information: the same bits come from the same versions.
        constraints: The black-box constraints, user units.
        linear: The known linear constraints, user units.
        feasibility_tol: By how much of its scale a constraint may be violated at a feasible point.
    """

    box: Box
    method: str
    seed: int
    maximize: bool
    check_gradients: GradientCheck
    budget: int | None = None
    versions: Mapping[str, str] = field(default_factory=_versions)
    constraints: Limits = field(default_factory=Limits)
    linear: LinearRows = field(default_factory=LinearRows)
    feasibility_tol: float = FEASIBILITY_TOL

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` builds an equal definition."""
        return {
            "box": self.box.to_json(),
            "method": self.method,
            "seed": self.seed,
            "maximize": self.maximize,
            "check_gradients": self.check_gradients,
            "budget": self.budget,
            "versions": dict(self.versions),
            "constraints": self.constraints.to_json(),
            "linear": self.linear.to_json(),
            "feasibility_tol": self.feasibility_tol,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Definition":
        """The definition that `to_json` described.

        Raises:
            ValueError: it described none.
        """
        needed = {"box", "method", "seed", "maximize", "check_gradients", "versions"}
        if not needed <= set(stored) <= {*needed, *_ADDED}:
            expected = ", ".join(cls.__slots__)
            raise ValueError(f"expected a definition stored as {expected}, got {', '.join(map(str, stored))}")
        method, seed, maximize, versions = (stored[name] for name in ("method", "seed", "maximize", "versions"))
        if not isinstance(method, str) or not isinstance(maximize, bool) or whole_number(seed, least=0) is None:
            raise ValueError(f"method = {method!r}, seed = {seed!r}, maximize = {maximize!r} define no study")
        if not isinstance(versions, dict) or not all(isinstance(text, str) for text in versions.values()):
            raise ValueError(f"expected versions by package, got {versions!r}")
        mode, budget = checked_mode(stored["check_gradients"]), checked_budget(stored.get("budget"))
        # Studies of earlier formats have none.
        limits = Limits.from_json(stored["constraints"]) if "constraints" in stored else Limits()
        linear = LinearRows.from_json(stored["linear"]) if "linear" in stored else LinearRows()
        box = Box.from_json(stored["box"])
        if len(linear) and linear.A.shape[1] != box.dim:
            raise ValueError(f"the linear constraints have {linear.A.shape[1]} coordinates, and the box {box.dim}")
        tol = checked_feasibility_tol(stored.get("feasibility_tol", FEASIBILITY_TOL))
        return cls(box, method, seed, maximize, mode, budget, versions, limits, linear, tol)


def checked_budget(budget: Any) -> int | None:
    """The number of evaluations, if it is one.

    Raises:
        ValueError: it is none.
    """
    if budget is None:
        return None
    exact = int(budget) if isinstance(budget, float) and budget.is_integer() else budget  # 1e3, say
    if (count := whole_number(exact, least=1)) is None:
        raise ValueError(f"budget={budget!r}, expected the number of evaluations: a whole number, at least 1")
    return count


def checked_feasibility_tol(tol: Any) -> float:
    """By how much of its scale a constraint may be violated, if that is a number.

    Raises:
        ValueError: it is none.
    """
    if isinstance(tol, bool) or not isinstance(tol, int | float) or not 0.0 <= tol < float("inf"):
        raise ValueError(f"feasibility_tol={tol!r}, expected a number, at least 0; 1e-6 is a millionth of the scale")
    return float(tol)


def checked_seed(seed: Seed) -> int:
    """The seed, if it is one; None draws one, and so does one of NumPy's generators.

    Raises:
        ValueError: it is none.
    """
    if seed is None:
        return secrets.randbits(32)
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**32))
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(2**32, dtype=np.uint64))
    if (number := whole_number(seed, least=0)) is None:
        raise ValueError(f"seed={seed!r}, expected a whole number, at least 0, a NumPy generator, or None to draw one")
    return number
