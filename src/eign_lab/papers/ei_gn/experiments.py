"""The paper's experiments, and further ones that its comments and its gaps suggest.

| settings | from |
|---|---|
| initial points, budgets, restarts, raw samples | the paper's tables, with the last two columns exchanged |
| one alpha = 0.6, given explicitly | so that the sweep over alpha shares its runs with the comparisons |
| L-BFGS-B, dLogEI and `auto` everywhere | ours: rivals that see the same gradients |

`VERSION` is 4 since the jitter of the surrogate may fall to 1e-12; 3 had 1e-9 or more, and 2 noise of variance 1e-6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from eign.problems import gp_samples
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec, quick_version
from eign_lab.runs.experiment_file import load_experiments

VERSION: Final = 4

_SHEKEL: Final = ProblemSpec("shekel-4", 12, 125, restarts=8, raw_samples=256, checkpoints=(40, 80, 125))
_HARTMANN: Final = ProblemSpec("hartmann-6", 18, 150, restarts=10, raw_samples=512, checkpoints=(50, 100, 150))
_COSINE: Final = ProblemSpec("cosine-8", 24, 200, restarts=20, raw_samples=1024, checkpoints=(50, 100, 150, 200))
_GRIEWANK: Final = ProblemSpec("griewank-10", 30, 300, restarts=20, raw_samples=1024, checkpoints=(100, 200, 300))
_ACKLEY: Final = ProblemSpec("ackley-14", 42, 500, restarts=20, raw_samples=1024, checkpoints=(150, 300, 500))
_HOLDER: Final = ProblemSpec("holder-table-2", 6, 50, restarts=8, raw_samples=256, checkpoints=(25, 50))
_MIXTURE: Final = ProblemSpec("mixture-1", 10, 30, restarts=8, raw_samples=256, checkpoints=(10, 20, 30))

# Dimension, initial points, budget, restarts and raw samples of the functions drawn from a Gaussian process.
_SAMPLES: Final = ((7, 21, 175, 10, 512), (8, 24, 200, 20, 1024), (9, 27, 250, 20, 1024))
_OUT: Final = tuple(
    ProblemSpec(
        f"gp-sample-{d}", initial, budget, restarts=restarts, raw_samples=raw, checkpoints=(100, budget - 25, budget)
    )
    for d, initial, budget, restarts, raw in _SAMPLES
)
# The true hyperparameters, and no fitting.
_WITHIN: Final = tuple(
    replace(
        problem,
        surrogate={"kernel": "rbf", "hyperparameters": {"lengthscale": gp_samples.lengthscale(d), "outputscale": 1.0}},
    )
    for problem, (d, *_) in zip(_OUT, _SAMPLES, strict=True)
)

_POLICIES: Final = tuple(
    ProblemSpec(name, initial, 100, seeded=True, restarts=32, raw_samples=512, checkpoints=(50, 75, 100))
    for name, initial in (("acrobot-6", 18), ("cartpole-13", 39), ("cartpole-fixed-13", 39))
)


def _ei_gn(alpha: float, label: str = "EI-GN") -> MethodSpec:
    return MethodSpec(label, "ei-gn", {"alpha": alpha})


_EI_GN: Final = _ei_gn(0.6)
_EI: Final = MethodSpec("EI", "ei")
_LOG_EI: Final = MethodSpec("LogEI", "log-ei")
_UCB: Final = MethodSpec("UCB", "ucb", {"weight": 2.0})
_CMA_ES: Final = MethodSpec("CMA-ES", "cma-es", {"sigma0": 0.25})
_SOBOL: Final = MethodSpec("Sobol", "sobol")
_L_BFGS: Final = MethodSpec("L-BFGS-B", "l-bfgs")
_EI_XI: Final = tuple(MethodSpec(f"EI (xi = {xi:g})", "ei-xi", {"xi": xi}) for xi in (0.01, 0.1, 1.0))
_D_EI_GN: Final = MethodSpec("dEI-GN", "d-ei-gn", {"alpha": 0.6})
_D_EI: Final = MethodSpec("dEI", "d-ei")
_REINFORCE: Final = MethodSpec("REINFORCE", "reinforce", {"step": 0.3})
_EI_G_BOUND: Final = MethodSpec("EI_g bound", "ei-g-bound", {"alpha": 0.6, "samples": 256})
_EI_G: Final = MethodSpec("EI_g", "ei-g", {"alpha": 0.6})
_THOMPSON: Final = MethodSpec("Thompson", "thompson", {"candidates": 1024})

_D_LOG_EI: Final = MethodSpec("dLogEI", "d-log-ei")
_AUTO: Final = MethodSpec("auto", "auto")
_WITH_GRADIENTS: Final = (_L_BFGS, _D_LOG_EI, _AUTO)

# Without stationarity it is EI, which also is cheaper, and shared with the comparisons.
_SWEEP: Final = (
    replace(_EI, label="alpha = 0"),
    *(_ei_gn(alpha, f"alpha = {alpha:g}") for alpha in (0.2, 0.4, 0.6, 0.8, 1.0)),
    *_WITH_GRADIENTS,
)
_EI_FAMILY: Final = (_EI_GN, _EI, _LOG_EI, *_EI_XI, *_WITH_GRADIENTS)


_BOTORCH_EI: Final = MethodSpec("BoTorch EI", "botorch/ei")
_OTHER_SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "noise learned": {"noise": "learned"},
    "noise 1e-4": {"noise": 1e-4},
    "noise 1e-2": {"noise": 1e-2},
    "as it comes": {"noise": "learned", "priors": "botorch"},
    "values as they are": {"standardize": False},
    "only the incumbent standardized": {"standardize": False, "incumbent": "standardized"},
    "inputs as they are": {"normalize": False},
    "inputs as they are, noise learned": {"normalize": False, "noise": "learned"},
    "nothing rescaled, noise learned": {"normalize": False, "standardize": False, "noise": "learned"},
    "single precision, noise learned": {"precision": "single", "noise": "learned"},
}


_BOTORCH_VARIANTS: Final = tuple(
    MethodSpec(f"BoTorch, {title}", "botorch/ei", options) for title, options in _OTHER_SETTINGS.items()
)


def _mirrored(problem: ProblemSpec) -> ProblemSpec:
    return replace(problem, options={"mirrored": {}}, label="")


_PAPER: Final = (
    Experiment(
        "fig1", "Acquisition landscapes on a one-dimensional mixture", (_MIXTURE,), (_EI, _EI_GN, *_WITH_GRADIENTS)
    ),
    Experiment(
        "synthetic",
        "Synthetic functions",
        (_SHEKEL, _HARTMANN, _GRIEWANK, _ACKLEY),
        (_EI_GN, _EI, _LOG_EI, _UCB, _CMA_ES, _SOBOL, *_WITH_GRADIENTS),
    ),
    Experiment("within", "Samples of a Gaussian process, surrogate matched", _WITHIN, _EI_FAMILY),
    Experiment("out", "Samples of a Gaussian process, surrogate fitted", _OUT, _EI_FAMILY),
    Experiment(
        "ablation",
        "Gradients in the surrogate, in the acquisition, in both",
        (_SHEKEL, _HARTMANN, _HOLDER),
        (_D_EI_GN, _D_EI, _EI_GN, _EI, *_WITH_GRADIENTS),
    ),
    Experiment("policy", "Policy search", _POLICIES, (_EI_GN, _EI, _REINFORCE, *_WITH_GRADIENTS)),
    Experiment(
        "truncation",
        "The orthant in place of the exact stationarity term",
        (_HARTMANN, _COSINE),
        (_EI_GN, _EI_G_BOUND, *_WITH_GRADIENTS),
    ),
    Experiment("alpha", "The weight of stationarity", (_HARTMANN, _COSINE, _GRIEWANK, _ACKLEY), _SWEEP),
)

_EXTRA: Final = (
    Experiment(
        "thompson",
        "Thompson sampling as a baseline",
        (_SHEKEL, _HARTMANN, _GRIEWANK, *_OUT),
        (_EI_GN, _EI, _THOMPSON, *_WITH_GRADIENTS),
        extra=True,
    ),
    Experiment("alpha-within", "The weight of stationarity, surrogate matched", _WITHIN, _SWEEP, extra=True),
    Experiment("alpha-out", "The weight of stationarity, surrogate fitted", _OUT, _SWEEP, extra=True),
    Experiment(
        "mirrored",
        "Coordinates turned round: EI-GN sees another function, the invariant EI_g and its bound do not",
        tuple(spec for problem in (_SHEKEL, _HARTMANN, _COSINE) for spec in (problem, _mirrored(problem))),
        (_EI_GN, _EI_G, _EI_G_BOUND, *_WITH_GRADIENTS),
        extra=True,
    ),
    Experiment(
        "botorch",
        "Whole runs beside plain BoTorch",
        (_SHEKEL, _HARTMANN, _COSINE, _GRIEWANK),
        (_EI, _LOG_EI, _BOTORCH_EI, MethodSpec("BoTorch LogEI", "botorch/log-ei"), *_WITH_GRADIENTS),
        extra=True,
    ),
    Experiment(
        "settings",
        "Which settings may the paper's EI on Shekel come from?",
        (_SHEKEL,),
        (_EI, _BOTORCH_EI, *_BOTORCH_VARIANTS, *_WITH_GRADIENTS),
        extra=True,
    ),
)

EXPERIMENTS: Final = MappingProxyType(
    {experiment.id: replace(experiment, version=VERSION) for experiment in (*_PAPER, *_EXTRA)}
)
"""All built-in experiments by id, those of the paper first."""


def select(ids: Sequence[str], *, spec: Path | None = None, quick: bool = False) -> list[Experiment]:
    """The experiments of these ids.

    Args:
        ids: None means those of the paper, all in a quick trial, and with a TOML file those of it; "all" means the
            extra ones too.
        spec: A TOML file with the user's own experiments, in place of the built-in ones.
        quick: Whether to try everything with hardly any work.

    Raises:
        ValueError: there is no such experiment.
    """
    known = EXPERIMENTS if spec is None else {experiment.id: experiment for experiment in load_experiments(spec)}
    chosen = list(dict.fromkeys(ids))
    if not ids and spec is None and not quick:
        chosen = [name for name, experiment in known.items() if not experiment.extra]
    elif not ids or ("all" in ids and spec is None):
        chosen = list(known)
    if unknown := [name for name in chosen if name not in known]:
        where = "" if spec is None else f" in {spec}"
        raise ValueError(f"there is no experiment {unknown[0]!r}{where}; expected some of {', '.join(known)}, or all")
    experiments = [known[name] for name in chosen]
    return [quick_version(experiment) for experiment in experiments] if quick else experiments
