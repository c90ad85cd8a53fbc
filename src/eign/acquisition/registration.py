"""Tells BoTorch how to build our acquisitions, once its registry of them is loaded: by Ax, say, or by the user.

The registry imports all of BoTorch's acquisitions, and JAX where it is installed: half of the time that our own search
takes to load, which never looks at it.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Final, final

_REGISTRY: Final = "botorch.acquisition.input_constructors"
_OURS: Final = "eign.acquisition.input_constructors"


def register_with_botorch() -> None:
    """Register our acquisitions now if the registry is loaded, else as soon as it is."""
    if _REGISTRY in sys.modules:
        import_module(_OURS)
    else:
        sys.meta_path.insert(0, _RegistryFinder())


@final
class _RegistryFinder(MetaPathFinder):
    """Finds the registry where it is, and lets it be followed by ours; then it is gone."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name != _REGISTRY:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _FollowedByOurs(spec.loader)
        return spec


@final
class _FollowedByOurs(Loader):
    """Loads a module, and then the one that registers our acquisitions in it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        import_module(_OURS)
