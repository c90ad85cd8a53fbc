"""The model that the data speak for: `fitted` chooses it, by evidence. Loaded on first use."""

from typing import TYPE_CHECKING

from eign.lazy_names import lazy_names

if TYPE_CHECKING:
    from eign.models.selection.choice import Choice, SelectedModel, Selection, apart, fitted
    from eign.models.selection.settings import ModelSettings

__all__ = ["Choice", "ModelSettings", "SelectedModel", "Selection", "apart", "fitted"]

_CHOICE = "eign.models.selection.choice"
_HOMES = {
    "Choice": _CHOICE,
    "ModelSettings": "eign.models.selection.settings",
    "SelectedModel": _CHOICE,
    "Selection": _CHOICE,
    "apart": _CHOICE,
    "fitted": _CHOICE,
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
