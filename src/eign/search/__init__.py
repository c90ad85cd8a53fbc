"""Search for the maximum of an acquisition over the unit cube."""

from eign.search.maximize import Effort, Suggestion, default_effort, maximize

__all__ = ["Effort", "Suggestion", "default_effort", "maximize"]
