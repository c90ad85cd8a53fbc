"""The paper's eighteen claims as data: which methods are compared, where, after how many evaluations, and how.

A claim has parts, and holds if all of them do. `judgements` decides about them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, final


class Relation(StrEnum):
    """How a first method compares with a second one, seed by seed."""

    BETTER = "is better than"
    SIMILAR = "is similar to"
    STEADIER = "varies less than"
    FASTER = "needs fewer evaluations than"
    NEAR = "is near the optimum"


@final
@dataclass(frozen=True, slots=True)
class Part:
    """One comparison.

    Attributes:
        relation: What is claimed.
        experiment: Id of the experiment.
        problem: Label of the problem.
        first: Label of a method.
        second: Label of the other; empty where there is none.
        evaluations: The number at which they are compared; 0 is the whole budget.
        second_experiment: Where the second is looked up, if elsewhere.
    """

    relation: Relation
    experiment: str
    problem: str
    first: str
    second: str = ""
    evaluations: int = 0
    second_experiment: str = ""

    @property
    def is_test(self) -> bool:
        """Whether it is decided by a test of significance, and counts for Holm's correction."""
        return self.relation in (Relation.BETTER, Relation.STEADIER, Relation.FASTER)

    def __str__(self) -> str:
        elsewhere = f" in {self.second_experiment}" if self.second_experiment else ""
        return f"{self.problem}: {self.first} {self.relation} {self.second}".rstrip() + elsewhere


@final
@dataclass(frozen=True, slots=True)
class Claim:
    """One claim.

    Attributes:
        number: In the paper's order.
        text: In our words.
        parts: What it consists of; empty if it is measured in another way, see `measured`.
        measured: Name of the measurement that decides it.
    """

    number: int
    text: str
    parts: tuple[Part, ...] = ()
    measured: str = ""


_VALUE_RIVALS: Final = ("EI", "LogEI", "UCB", "CMA-ES", "Sobol")
_EI_RIVALS: Final = ("EI", "LogEI", "EI (xi = 0.01)", "EI (xi = 0.1)", "EI (xi = 1)")
_FOUR: Final = ("shekel-4", "hartmann-6", "griewank-10", "ackley-14")
_SWEPT: Final = ("hartmann-6", "cosine-8", "griewank-10", "ackley-14")
_POSITIVE: Final = ("alpha = 0.2", "alpha = 0.4", "alpha = 0.6", "alpha = 0.8", "alpha = 1")
_POLICIES: Final = ("acrobot-6", "cartpole-13")


def _better(experiment: str, problem: str, first: str, *seconds: str, at: int = 0) -> Iterator[Part]:
    return (Part(Relation.BETTER, experiment, problem, first, second, at) for second in seconds)


def _similar(experiment: str, problem: str, first: str, *seconds: str, at: int = 0) -> Iterator[Part]:
    return (Part(Relation.SIMILAR, experiment, problem, first, second, at) for second in seconds)


_CLAIMS_ON_VALUES: Final = (
    Claim(
        1,
        "On the one-dimensional mixture EI is nearly zero on most of the domain and sits at the incumbent; EI-GN has "
        "several high regions.",
        measured="landscapes",
    ),
    Claim(
        2,
        "Shekel: EI-GN beats all but UCB, which is similar.",
        (
            *_better("synthetic", "shekel-4", "EI-GN", "EI", "LogEI", "CMA-ES", "Sobol"),
            *_similar("synthetic", "shekel-4", "EI-GN", "UCB"),
        ),
    ),
    Claim(
        3,
        "Hartmann: EI-GN and EI are alike at first, EI-GN is better at the end.",
        (
            *_similar("synthetic", "hartmann-6", "EI-GN", "EI", at=50),
            *_better("synthetic", "hartmann-6", "EI-GN", "EI"),
        ),
    ),
    Claim(4, "Griewank: EI-GN beats all.", tuple(_better("synthetic", "griewank-10", "EI-GN", *_VALUE_RIVALS))),
    Claim(5, "Ackley: EI-GN beats all.", tuple(_better("synthetic", "ackley-14", "EI-GN", *_VALUE_RIVALS))),
    Claim(
        6,
        "On these four LogEI is worse than EI-GN and similar to EI.",
        (
            *(part for problem in _FOUR for part in _better("synthetic", problem, "EI-GN", "LogEI")),
            *(part for problem in _FOUR for part in _similar("synthetic", problem, "LogEI", "EI")),
        ),
    ),
    Claim(
        7,
        "Samples within the model: all are similar in 7 dimensions, EI-GN is better in 8 and 9.",
        (
            *_similar("within", "gp-sample-7", "EI-GN", *_EI_RIVALS),
            *_better("within", "gp-sample-8", "EI-GN", *_EI_RIVALS),
            *_better("within", "gp-sample-9", "EI-GN", *_EI_RIVALS),
        ),
    ),
    Claim(
        8,
        "Samples out of the model: EI-GN is better throughout, and about as good as within.",
        (
            *(part for d in (7, 8, 9) for part in _better("out", f"gp-sample-{d}", "EI-GN", *_EI_RIVALS)),
            *(
                Part(Relation.SIMILAR, "out", f"gp-sample-{d}", "EI-GN", "EI-GN", second_experiment="within")
                for d in (7, 8, 9)
            ),
        ),
    ),
)

_CLAIMS_ON_GRADIENTS: Final = (
    Claim(
        9,
        "Shekel: dEI beats EI, EI-GN beats EI, dEI-GN beats both.",
        (
            *_better("ablation", "shekel-4", "dEI", "EI"),
            *_better("ablation", "shekel-4", "EI-GN", "EI"),
            *_better("ablation", "shekel-4", "dEI-GN", "dEI", "EI-GN"),
        ),
    ),
    Claim(
        10,
        "Hartmann: dEI is near the optimum quickly, and dEI-GN is similar to it.",
        (
            Part(Relation.NEAR, "ablation", "hartmann-6", "dEI", evaluations=50),
            *_similar("ablation", "hartmann-6", "dEI-GN", "dEI"),
        ),
    ),
    Claim(
        11,
        "Holder table: dEI-GN is best.",
        tuple(_better("ablation", "holder-table-2", "dEI-GN", "dEI", "EI-GN", "EI")),
    ),
    Claim(
        12,
        "Acrobot: EI-GN and EI are alike early; at the end EI-GN is higher and varies less.",
        (
            *_similar("policy", "acrobot-6", "EI-GN", "EI", at=50),
            *_better("policy", "acrobot-6", "EI-GN", "EI"),
            Part(Relation.STEADIER, "policy", "acrobot-6", "EI-GN", "EI"),
        ),
    ),
    Claim(13, "CartPole: EI-GN and EI are similar.", tuple(_similar("policy", "cartpole-13", "EI-GN", "EI"))),
    Claim(
        14,
        "Both need fewer evaluations than REINFORCE.",
        tuple(
            Part(Relation.FASTER, "policy", problem, method, "REINFORCE")
            for problem in _POLICIES
            for method in ("EI-GN", "EI")
        ),
    ),
    Claim(
        15,
        "The bound of EI_g: similar to EI-GN on Hartmann, slightly ahead early on Cosine.",
        (
            *(
                part
                for at in (50, 100, 150)
                for part in _similar("truncation", "hartmann-6", "EI-GN", "EI_g bound", at=at)
            ),
            *_better("truncation", "cosine-8", "EI_g bound", "EI-GN", at=50),
        ),
    ),
    Claim(
        16,
        "Of the weights of stationarity, 0 is worst and the positive ones are alike.",
        (
            *(
                part
                for problem in _SWEPT
                for positive in _POSITIVE
                for part in _better("alpha", problem, positive, "alpha = 0")
            ),
            *(
                part
                for problem in _SWEPT
                for part in _similar("alpha", problem, "alpha = 0.6", *(a for a in _POSITIVE if a != "alpha = 0.6"))
            ),
        ),
    ),
    Claim(17, "EI-GN's own cost is negligible beside the posterior of the processes.", measured="costs"),
    Claim(
        18,
        "Out of the model in 9 dimensions: alpha = 0.2 is worse than 0.4 and above.",
        tuple(part for larger in _POSITIVE[1:] for part in _better("alpha-out", "gp-sample-9", larger, "alpha = 0.2")),
    ),
)

CLAIMS: Final = (*_CLAIMS_ON_VALUES, *_CLAIMS_ON_GRADIENTS)
"""In the paper's order."""
