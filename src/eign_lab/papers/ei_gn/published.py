"""Numbers that the comments in the paper's source give: mean and standard error of the best value over 20 seeds."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from eign.plot.bands import MeanAndError


def _row(evaluations: tuple[int, ...], *values: tuple[float, float]) -> dict[int, MeanAndError]:
    return {
        count: MeanAndError(np.array(value[0]), np.array(value[1]))
        for count, value in zip(evaluations, values, strict=True)
    }


_HARTMANN, _COSINE, _SHEKEL, _HOLDER = (50, 100, 150), (50, 100, 150, 200), (40, 80, 125), (25, 50)

PUBLISHED: Final[Mapping[tuple[str, str], Mapping[int, MeanAndError]]] = {
    ("hartmann-6", "EI-GN"): _row(_HARTMANN, (3.20, 0.02), (3.20, 0.02), (3.20, 0.02)),
    ("hartmann-6", "EI_g bound"): _row(_HARTMANN, (3.18, 0.03), (3.19, 0.02), (3.19, 0.02)),
    ("cosine-8", "EI-GN"): _row(_COSINE, (0.11, 0.05), (0.18, 0.04), (0.23, 0.03), (0.26, 0.03)),
    ("cosine-8", "EI_g bound"): _row(_COSINE, (0.14, 0.04), (0.20, 0.03), (0.24, 0.03), (0.26, 0.03)),
    ("shekel-4", "dEI-GN"): _row(_SHEKEL, (4.98, 0.52), (5.01, 0.58), (5.03, 0.57)),
    ("shekel-4", "dEI"): _row(_SHEKEL, (4.18, 0.47), (4.42, 0.46), (4.53, 0.48)),
    ("shekel-4", "EI-GN"): _row(_SHEKEL, (3.05, 0.38), (3.88, 0.47), (4.03, 0.42)),
    ("shekel-4", "EI"): _row(_SHEKEL, (0.82, 0.09), (0.93, 0.08), (1.02, 0.08)),
    ("holder-table-2", "dEI-GN"): _row(_HOLDER, (18.2, 0.6), (19.1, 0.3)),
    ("holder-table-2", "dEI"): _row(_HOLDER, (16.3, 0.5), (16.8, 0.4)),
    ("holder-table-2", "EI-GN"): _row(_HOLDER, (16.5, 0.6), (17.1, 0.5)),
    ("holder-table-2", "EI"): _row(_HOLDER, (13.0, 1.1), (13.5, 0.9)),
}
"""By problem and method, then by the number of evaluations."""
