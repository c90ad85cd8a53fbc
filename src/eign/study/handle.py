"""What integrations and the laboratory need of an optimizer beyond asking and telling.

| | |
|---|---|
| `handle` | the study behind it: proposals without a log, the method's state, convergence |
| `snapshot`, `restore` | a study in memory as plain data, to go on elsewhere |
"""

from collections.abc import Mapping
from typing import Any

from eign.study.optimizer import Optimizer
from eign.study.study import Study


def handle(optimizer: Optimizer) -> Study:
    """The study behind an optimizer."""
    return optimizer._study


def snapshot(optimizer: Optimizer) -> dict[str, Any]:
    """A study as plain data: its definition, the events so far and the state of its method.

    >>> opt = Optimizer([(0.0, 1.0)], method="sobol", seed=0)
    >>> x = opt.ask()
    >>> bool((restore(snapshot(opt)).pending == x).all())
    True
    """
    return handle(optimizer).to_json()


def restore(stored: Mapping[str, Any]) -> Optimizer:
    """The study that `snapshot` described, in memory; it goes on bit for bit as that one would."""
    return Optimizer._of(Study.from_json(**stored))
