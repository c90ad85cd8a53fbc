"""The default method: one joint model that is chosen by evidence, and three kinds of steps on it."""

from eign.strategies.auto.auto import Auto

__all__ = ["Auto"]
