"""Public names of a package that are loaded on first use (PEP 562), so that importing the package costs nothing."""

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package whose public names have these home modules."""

    def load(name: str) -> object:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(homes)}")

    return load, lambda: sorted(homes)
