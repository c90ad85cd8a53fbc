"""A TOML file that a user wrote, and the lines on which its keys stand: tomllib does not say them."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from eign.checks import EntryError, Place

# Where a statement may end or a bracket count: texts in quotes and comments hide both.
_TOKENS: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[][{}]|\n",
    re.DOTALL,
)


class SpecError(ValueError):
    """A file does not say what it should; the message names the file, the line and the key."""


@final
@dataclass(frozen=True, slots=True)
class TomlFile:
    """What a file says.

    Attributes:
        path: The file.
        text: All of it.
        content: The same as dicts, lists, numbers and texts.
    """

    path: Path
    text: str
    content: dict[str, Any]

    @contextmanager
    def located(self) -> Iterator[None]:
        """Wrong entries of the content in this block are errors with the file's name and the line."""
        try:
            yield
        except EntryError as error:
            # An entry of a list has no key of its own: the line of the list it is in.
            places = (error.place[:end] for end in range(len(error.place), 0, -1))
            line = next((found for place in places if (found := find_line(self.text, place))), None)
            where = f"{self.path}, line {line}" if line else str(self.path)
            raise SpecError(f"{where}: {error}") from None


def read_toml(path: Path) -> TomlFile:
    """The file, parsed.

    Raises:
        SpecError: it is no TOML.
        FileNotFoundError: there is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return TomlFile(path, text, tomllib.loads(text))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: expected a TOML file in UTF-8: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: {error}") from None  # which names the line


def find_line(text: str, place: Place) -> int | None:
    r"""The line, counted from 1, on which the statement with an entry begins; None if the text has no such entry.

    Every statement is parsed by itself, once: the time is linear in the length of the text.

    >>> find_line('budget = 3\n[bounds]\na = [\n 0, 1]\nb = [0, 2]', ("bounds", "a"))
    3
    """
    if not place:
        return None
    table: Place = ()
    sizes: dict[Place, int] = {}  # of arrays of tables
    for line, statement in _statements(text):
        if statement.lstrip().startswith("["):
            table = _table_begun(statement, sizes)
            if table[: len(place)] == place:
                return line
        elif place[: len(table)] == table and _has(tomllib.loads(statement), place[len(table) :]):
            return line
    return None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Every header and every `key = value` of a valid text, which may take several lines, with its first line."""
    line, begun, first, depth = 1, 0, 1, 0
    text += "\n"
    for found in _TOKENS.finditer(text):
        token = found[0]
        depth += (token in "[{") - (token in "]}")
        line += token.count("\n")
        if token == "\n" and depth == 0:
            statement = text[begun : found.end()]
            blank = len(statement) - len(statement.lstrip())
            if statement.strip() and not statement.lstrip().startswith("#"):
                yield first + statement[:blank].count("\n"), statement
            begun, first = found.end(), line


def _table_begun(header: str, sizes: dict[Place, int]) -> Place:
    """The place of the table that a header begins; a table in an array of tables is in the last one of them."""
    inner: Any = tomllib.loads(header)
    keys: list[str] = []
    is_array = False
    while inner:
        is_array = isinstance(inner, list)
        if is_array:
            inner = inner[0]
        else:
            ((key, inner),) = inner.items()
            keys.append(key)
    place: Place = ()
    for number, key in enumerate(keys, start=1):
        place = (*place, key)
        if is_array and number == len(keys):
            sizes[place] = sizes.get(place, 0) + 1
        if place in sizes:
            place = (*place, sizes[place] - 1)
    return place


def _has(found: Any, place: Place) -> bool:
    for key in place:
        keys = found if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else ()
        if key not in keys:
            return False
        found = found[key]
    return True
