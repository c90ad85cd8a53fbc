"""Ax with gradients: a generation strategy of one node, gradients as tracking metrics.

    python examples/ax_gradients.py

The objective is the moved Branin function, to be minimised; two trials run at a time.
"""

import logging

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.utils.common.logger import set_ax_logger_levels

import eign
from eign.integrations.ax import GradientNode, gradient_metric, raw_data

PROBLEM = eign.problems.shifted(eign.problems.get("branin"), seed=1)
NAMES = ("x", "y")


def simulate(parameters: dict[str, float]) -> tuple[float, dict[str, float]]:
    """Loss and gradient; problems are stated as maximisation."""
    value, gradient = PROBLEM([parameters[name] for name in NAMES])
    return -value, dict(zip(NAMES, (-gradient).tolist(), strict=True))


def main() -> None:
    """Nine rounds of two trials."""
    set_ax_logger_levels(logging.WARNING)
    client = Client()
    bounds = zip(NAMES, PROBLEM.bounds.lower.tolist(), PROBLEM.bounds.upper.tolist(), strict=True)
    client.configure_experiment(
        [RangeParameterConfig(name=name, parameter_type="float", bounds=(low, high)) for name, low, high in bounds]
    )
    client.configure_optimization(objective="-loss")
    client.configure_tracking_metrics([gradient_metric(name) for name in NAMES])
    client.set_generation_strategy(GenerationStrategy(name="eign", nodes=[GradientNode(seed=0)]))
    for _ in range(9):
        for index, parameters in client.get_next_trials(max_trials=2).items():
            loss, gradient = simulate(parameters)
            # Without noise: a standard error of zero; (mean, standard error) where there is some.
            client.complete_trial(index, raw_data("loss", (loss, 0.0), {k: (g, 0.0) for k, g in gradient.items()}))
    losses = client.summarize()["loss"]
    print(f"loss {losses.min():.6f} after {len(losses)} trials; the optimum is {-PROBLEM.optimum:.6f}")


if __name__ == "__main__":
    main()
