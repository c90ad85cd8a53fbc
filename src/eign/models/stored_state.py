"""What `state_dict` of a surrogate carries, so that another one can begin where it ended: no data, but what it learned.

| key | what it is |
|---|---|
| `lengthscale`, `outputscale`, ... | the hyperparameters, in standardised units |
| `standardization.*` | the units that they are in |
| `warm_start.*` | what a fit leaves to the next one |
| `_extra_state` | in words: model, kernel, kinds of lengthscales and noise, number of coordinates, fitted or not |

All but the last are tensors, and the last is plain data: `torch.load(file, weights_only=True)` reads them.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from eign.arrays import Array
from eign.standardization import Standardization

WORDS: Final = "_extra_state"
_UNITS: Final = "standardization."


def as_tensors(numbers: Mapping[str, Array], units: Standardization) -> dict[str, Tensor]:
    """Hyperparameters and units under their keys, in memory of their own."""
    of_units = {_UNITS + each.name: getattr(units, each.name) for each in fields(units)}
    return {name: torch.tensor(np.asarray(value)) for name, value in {**numbers, **of_units}.items()}


def check_words(stored: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """That a state is of the same kind of model.

    Raises:
        ValueError: It is not, or it is no state of our models at all.
    """
    words = stored.get(WORDS)
    if not isinstance(words, Mapping) or not own.keys() <= words.keys():
        keys = ", ".join(list(stored)[:5]) or "none"
        raise ValueError(f"this is no state of a model of eign: it has no {WORDS!r} that says of which; keys: {keys}")
    for name in own:
        if name != "is_fitted" and words[name] != own[name]:
            raise ValueError(f"the state has {name} {words[name]!r}, and this model has {name} {own[name]!r}")


def read_numbers(stored: Mapping[str, Any], like: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of a state, those that `like` has too in its shapes.

    Raises:
        ValueError: One is missing, has another shape or is not finite.
    """
    numbers = {
        name: np.array(value.detach().cpu().numpy(), dtype=np.float64)
        for name, value in stored.items()
        if isinstance(value, Tensor)
    }
    if missing := [name for name in like if name not in numbers]:
        raise ValueError(f"the state lacks {', '.join(missing)}")
    for name, expected in like.items():
        if numbers[name].shape != expected.shape:
            raise ValueError(f"{name} has shape {numbers[name].shape} in the state, expected {expected.shape}")
        if not np.isfinite(numbers[name]).all():
            raise ValueError(f"{name} is not finite in the state: {numbers[name].tolist()}")
    return numbers


def read_units(numbers: Mapping[str, Array], given: Standardization | None) -> Standardization:
    """The units of a state; a model that was given others cannot take it.

    Raises:
        ValueError: They are others than those given, or are none.
    """
    parts = {each.name: numbers[_UNITS + each.name] for each in fields(Standardization)}
    units = Standardization(float(parts["y_shift"]), float(parts["y_scale"]), parts["grad_shift"], parts["grad_scale"])
    if given is not None and any(not np.array_equal(parts[name], getattr(given, name)) for name in parts):
        raise ValueError(
            "the state is in other units than the `standardization` that this model was given; "
            "make the model with that of the state, or without one"
        )
    return units
