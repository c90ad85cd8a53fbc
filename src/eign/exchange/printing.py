"""Text for a terminal: no escapes from files, lines that fit, counts in good English."""

import math
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

WIDTH: Final = 80
"""Columns of a terminal that does not say how many it has."""

_WIDEST, _NARROWEST = 120, 40


def terminal_width() -> int:
    """Columns to use: those of the terminal, though no line is easy to read beyond 120."""
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, _NARROWEST), _WIDEST)


def printable(text: object) -> str:
    r"""The text with everything spelt out that a terminal would obey instead of showing.

    >>> printable("name\x1b[2J\n")
    'name\\x1b[2J\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def counted(number: int, noun: str) -> str:
    """The number with its noun.

    >>> counted(1, "evaluation"), counted(0, "evaluation")
    ('1 evaluation', '0 evaluations')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def wrapped(text: str, *, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """Lines of at most `width` characters; words are broken only where a single one does not fit."""
    return textwrap.wrap(
        text, width, initial_indent=indent if first is None else first, subsequent_indent=indent, break_on_hyphens=False
    )


def entries(values: Iterable[tuple[str, object]]) -> list[str]:
    """One line for each pair, names and values below each other; long names are cut in their middle.

    >>> entries([("a", "1"), ("width", "2")])
    ['a      1', 'width  2']
    """
    shown = [(shortened(printable(name)), value) for name, value in values]
    width = max((len(name) for name, _ in shown), default=0)
    return [f"{name:<{width}}  {value}" for name, value in shown]


def shortened(name: str, most: int = 32) -> str:
    """A name of at most so many characters: the beginning and the end of a longer one.

    >>> shortened("a_very_long_name_of_a_coordinate_5", 16)
    'a_very_l…inate_5'
    """
    return name if len(name) <= most else f"{name[: most // 2]}…{name[len(name) - (most - 1) // 2 :]}"


def listed(summaries: Mapping[str, str], *, width: int) -> list[str]:
    """Names with one line each, or more where one does not fit."""
    column = max(map(len, summaries), default=0) + 2
    return [
        line
        for name, summary in summaries.items()
        for line in wrapped(summary, width=width, indent=" " * column, first=f"{name:<{column}}")
    ]


def plot_lines(
    values: Sequence[float | None],
    *,
    maximize: bool,
    feasible: Sequence[bool] | None = None,
    width: int = WIDTH,
    height: int = 8,
) -> list[str]:
    """A plot in plain characters: each value a dot, the best so far stars; no lines without two values.

    Values of points that are not `feasible` are crosses and none is the best; where nothing is feasible, all count.

    The range is that of the best so far, with some room beyond its worst; values further away are not shown. Where the
    best has not changed, it is that of all values. The scale is logarithmic where the best so far spans two powers of
    ten or more and keeps its sign.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return []
    allowed = _allowed(values, feasible)
    best = _best_so_far(allowed, maximize=maximize)
    ends = [value for value in best if value is not None]
    smallest, largest = sorted((abs(min(ends)), abs(max(ends))))
    is_log = min(ends) * max(ends) > 0 and largest / smallest >= 100
    sign = math.copysign(1.0, ends[0])
    shown = ends if min(ends) < max(ends) else known
    # In units of the largest value no difference overflows.
    unit = max(map(abs, shown)) or 1.0

    def position(value: float | None) -> float | None:
        if value is None or not math.isfinite(value) or (is_log and value * sign <= 0):
            return None
        return sign * math.log10(value * sign) if is_log else value / unit

    def label(height_: float) -> str:
        return f"{sign * 10 ** (sign * height_) if is_log else height_ * unit:.4g}"

    low, high = sorted((_required(position(min(shown))), _required(position(max(shown)))))
    room = 0.15 * (high - low) or abs(high) or 1.0
    low, high = (low - room, high) if maximize else (low, high + room)
    labels = [label(high), *[""] * (height - 2), label(low)]
    margin = max(map(len, labels))
    columns = _columns(len(values), width - margin - 3)
    canvas = [[" "] * (columns[-1] + 1) for _ in range(height)]
    for series, mark in ((values, "x"), (allowed, "."), (best, "*")):
        for column, value in zip(columns, series, strict=True):
            at = position(value)
            if at is not None and low <= at <= high:
                canvas[round((high - at) / (high - low) * (height - 1))][column] = mark
    lines = [f"{label_:>{margin}} |{''.join(row).rstrip()}" for label_, row in zip(labels, canvas, strict=True)]
    scale = "; log scale" if is_log else ""
    axis = f"{'':>{margin}} +{'-' * len(canvas[0])}"
    crosses = "" if allowed == list(values) else ", x infeasible"
    marks = f"* best so far, . each value{crosses}"
    return ["", *lines, axis, f"{'':>{margin}}  evaluations 1 to {len(values)}; {marks}{scale}"]


def _allowed(values: Sequence[float | None], feasible: Sequence[bool] | None) -> list[float | None]:
    """The values of feasible points; all of them if none is, or nobody says."""
    if feasible is None:
        return list(values)
    allowed = [value if ok else None for value, ok in zip(values, feasible, strict=True)]
    return allowed if any(value is not None and math.isfinite(value) for value in allowed) else list(values)


def _required(value: float | None) -> float:
    assert value is not None, "the ends of the range are on it"
    return value


def _best_so_far(values: Sequence[float | None], *, maximize: bool) -> list[float | None]:
    found: list[float | None] = []
    best: float | None = None
    for value in values:
        if (
            value is not None
            and math.isfinite(value)
            and (best is None or (value > best if maximize else value < best))
        ):
            best = value
        found.append(best)
    return found


def _columns(count: int, width: int) -> list[int]:
    """The column of each evaluation: one each while there is room."""
    return list(range(count)) if count <= width else [number * width // count for number in range(count)]
