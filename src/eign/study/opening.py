"""One door to a study for a whole run: new, in memory or in a file, or continued."""

from collections.abc import Mapping
from typing import Any

from eign.space import Box
from eign.strategies import strategy
from eign.study.optimizer import Optimizer
from eign.study.storage import as_path


def open_study(
    bounds: Any,
    *,
    method: str = "auto",
    seed: int | None = None,
    maximize: bool = False,
    storage: Any = None,
    options: Mapping[str, Any] | None = None,
    resume: bool = False,
) -> Optimizer:
    """The study that these arguments describe: the one in the file, if `resume` and there is one, or a new one.

    Raises:
        ValueError: the study in the file is another one, or there is no file to resume from.
    """
    if not resume:
        return Optimizer(bounds, method=method, seed=seed, maximize=maximize, storage=storage, options=options)
    if storage is None:
        raise ValueError("resume=True needs storage=, the file of the study")
    if not as_path(storage).exists():
        return Optimizer(bounds, method=method, seed=seed, maximize=maximize, storage=storage, options=options)
    study = Optimizer.resume(storage)
    try:
        box = bounds if isinstance(bounds, Box) else Box(bounds)
        asked: dict[str, tuple[Any, Any]] = {
            "bounds": (box, study.box),
            "method": (method, study.method),
            "maximize": (bool(maximize), study.maximizes),
        }
        if seed is not None:
            asked["seed"] = (seed, study.seed)
        if options is not None:
            complete = strategy(method).start(box.free_dim, options, study.seed, method=method).options
            asked["options"] = (dict(complete), dict(study.state.options))
        for name, (given, stored) in asked.items():
            if given != stored:
                raise ValueError(
                    f"{name}: given {given!r}, but the study in {storage} has {stored!r}; "
                    f"give the same, or another file for another study"
                )
    except BaseException:
        study.close()
        raise
    return study
