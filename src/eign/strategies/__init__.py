"""How each method starts, learns and proposes, in the unit cube; a registry by name."""

from eign.strategies.registry import methods, strategy
from eign.strategies.strategy import Proposal, State, Strategy

__all__ = ["Proposal", "State", "Strategy", "methods", "strategy"]
