"""Which step REINFORCE should take by default: mean best return after 100 evaluations, on seeds that no study uses.

    python -m eign_lab.studies.reinforce_steps [--seeds 10] [--workers 1]

Runs are kept in eign-reinforce-steps.sqlite.
"""

from typing import Final

from eign_lab.report.summaries import Table, plus_minus
from eign_lab.runs.experiment import Experiment, MethodSpec, ProblemSpec
from eign_lab.studies.question import Outcomes, answer

FIRST_SEED: Final = 1000
EXPERIMENT: Final = Experiment(
    "reinforce-steps",
    "Steps of REINFORCE",
    tuple(
        ProblemSpec(name, initial, 100, seeded=True)
        for name, initial in {"acrobot-6": 18, "cartpole-13": 39, "cartpole-fixed-13": 39}.items()
    ),
    tuple(MethodSpec(f"{step:g}", "reinforce", {"step": step}) for step in (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)),
)


def steps_table(outcomes: Outcomes) -> Table:
    """Mean and standard error of the best return, of the initial design and of all evaluations."""
    rows = tuple(
        (name, step, plus_minus(runs.best[:, (outcome.spec.initial or 1) - 1]), plus_minus(runs.best[:, -1]))
        for name, outcome in outcomes.items()
        for step, runs in outcome.runs.items()
    )
    return Table("Steps of REINFORCE", ("problem", "step", "best of the design", "best of all"), rows)


if __name__ == "__main__":
    answer(EXPERIMENT, steps_table, first_seed=FIRST_SEED)
