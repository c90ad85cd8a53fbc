"""An objective that is any program: a point goes in as JSON, value and gradient come back as JSON.

| file of an evaluation's directory | what it holds |
|---|---|
| `input.json` | the point, `{"x": [0.5, 2.0]}` or `{"x": {"width": 0.5, "length": 2.0}}` |
| `stdout.txt`, `stderr.txt` | what the program printed |
| `output.json` | the answer, if the program writes it to a file |

The answer is as `eign.exchange.answers` describes it.
"""

import json
import operator
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, final

import numpy as np

from eign.evaluation import AnswerError, Evaluation
from eign.exchange.answers import checked_answer, read_json
from eign.integrations.guard import GuardedProgram
from eign.interrupts import uninterrupted

Point = list[float] | dict[str, float]

_INPUT, _OUTPUT, _STDOUT, _STDERR = "input.json", "output.json", "stdout.txt", "stderr.txt"
# How much is shown of what the program printed: lines of stderr, characters of each (one line may have a hundred
# megabytes), and characters of an answer that is no JSON.
_TAIL: Final = 20
_LINE: Final = 300
_EXCERPT: Final = 200


class CommandError(RuntimeError):
    """The program failed: it ended with an error, took too long, or gave no answer."""


@final
class Command:
    """A program as the function of `minimize`, with `jac=True` if it gives gradients.

    It is started without a shell, in a directory of its own. Several can run at once: see `workers` of `minimize`.

    >>> program = "import json; x = json.loads(input())['x']; print(json.dumps({'value': (x[0] - 3) ** 2}))"
    >>> Command(["python3", "-c", program])([1.0]).value
    4.0
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        input: Literal["stdin", "file"] = "stdin",  # noqa: A002
        timeout: float | None = None,
        retries: int = 0,
        directory: str | os.PathLike[str] | None = None,
        keep: Literal["all", "failed"] = "all",
        env: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        """Check what can be checked before the first evaluation.

        Args:
            argv: The program and its arguments. "{input}" stands for the path of the input file. With "{output}" the
                answer is read from that file instead of stdout. A `Path` is made absolute, because the program
                runs elsewhere; so is the program itself if it has a slash.
            input: Where the program finds the point: on "stdin", or in the "file" whose path it is given.
            timeout: Seconds after which the program is killed, with whatever it has started.
            retries: How often to start it again after it failed.
            directory: Where the directories of the evaluations are made, numbered from 000001. None: each is
                temporary, and removed after the evaluation.
            keep: "all" directories, or those of "failed" evaluations.
            env: Environment variables, in addition to those of this process.
            names: Names of the coordinates, for points that come as arrays; a dict has its own.

        Raises:
            FileNotFoundError: There is no such program.
            ValueError: An argument is impossible.
        """
        self._argv = _words(argv)
        if input not in ("stdin", "file"):
            raise ValueError(f"input={input!r}, expected 'stdin' or 'file'")
        if keep not in ("all", "failed"):
            raise ValueError(f"keep={keep!r}, expected 'all' or 'failed'")
        if timeout is not None and not 0.0 < timeout < np.inf:
            raise ValueError(f"timeout={timeout!r}, expected seconds, more than 0, or None")
        if operator.index(retries) < 0:
            raise ValueError(f"retries={retries!r}, expected a whole number, at least 0")
        if any("{input}" in part for part in self._argv) != (input == "file"):
            raise ValueError(f"input={input!r}: expected '{{input}}' among the arguments if and only if it is 'file'")
        self._env = dict(env or {})
        self._argv[0] = _program(self._argv[0], {**os.environ, **self._env}.get("PATH"))
        self._reads_stdin = input == "stdin"
        self._writes_file = any("{output}" in part for part in self._argv)
        self._timeout, self._retries = timeout, retries
        self._directory = None if directory is None else Path(directory).absolute()
        self._keeps_all = keep == "all"
        self._names = None if names is None else tuple(names)
        self._start = Path.cwd()

    def __call__(self, point: Any) -> Evaluation:
        """Run the program at a point, an array (d,) or a dict by name.

        Raises:
            CommandError: It failed, the last time it was tried.
            ValueError: It answered, but not what was agreed.
        """
        x = _plain(point, self._names)
        for _ in range(self._retries):
            try:
                return self._run(x)
            except CommandError:
                continue
        return self._run(x)

    def _run(self, x: Point) -> Evaluation:
        """One try, in a new directory."""
        with self._new_directory() as directory:
            (directory / _INPUT).write_text(json.dumps({"x": x}) + "\n")
            try:
                self._execute(directory)
                return _evaluation(self._answer(directory), x)
            except CommandError as error:
                raise CommandError(self._report(error, directory)) from error.__cause__
            except AnswerError as error:
                raise AnswerError(self._report(error, directory)) from None

    def _execute(self, directory: Path) -> None:
        paths = {"{input}": str(directory / _INPUT), "{output}": str(directory / _OUTPUT)}
        argv = [_filled(part, paths) for part in self._argv]
        # Files and no pipes: nothing has to be read while it runs, and what it has started cannot hold them open.
        with (
            (directory / _INPUT).open() if self._reads_stdin else open(os.devnull) as stdin,
            (directory / _STDOUT).open("w") as stdout,
            (directory / _STDERR).open("w") as stderr,
        ):
            program: GuardedProgram | None = None
            try:
                with uninterrupted():  # else the program might have started, and nobody know it
                    program = GuardedProgram(
                        argv,
                        streams=(stdin, stdout, stderr),
                        directory=directory,
                        environment={**os.environ, **self._env},
                    )
                code = program.wait(self._timeout)
            except OSError as error:
                raise CommandError(f"cannot be started: {error}") from error
            except subprocess.TimeoutExpired:
                raise CommandError(f"was killed after {self._timeout:g} s (timeout)") from None
            finally:
                if program is not None:
                    program.end()
        if code != 0:
            raise CommandError(f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}")

    def _answer(self, directory: Path) -> Any:
        """The JSON that the program wrote: all of it, or its last line, after whatever else it printed."""
        path = directory / (_OUTPUT if self._writes_file else _STDOUT)
        where = "to its output file" if self._writes_file else "on stdout"
        text = path.read_text(errors="replace").strip() if path.exists() else ""
        for part in (text, text.rpartition("\n")[2]):
            try:
                return read_json(part)
            except ValueError:
                continue
        raise CommandError(f"wrote no JSON {where}, but {text[-_EXCERPT:]!r}" if text else f"wrote nothing {where}")

    def _report(self, error: Exception, directory: Path) -> str:
        """The error with what helps to find its reason."""
        place = "" if self._directory is None else f"; see {directory}"
        lines = [f"{Path(self._argv[0]).name} {error}{place}"]
        if printed := _last_lines(directory / _STDERR):
            lines += ["the end of its stderr:", *printed]
        for part in self._argv[1:]:
            # os.path says False where pathlib raises, as for a program text that is too long for a name.
            is_there = os.path.isfile(self._start / part)
            if is_there and not os.path.isabs(part) and not os.path.exists(directory / part):
                advice = f"give its absolute path; in Python Path({part!r}) is made absolute"
                lines.append(f"it ran in a directory of its own, without {part}: {advice}")
        return "\n".join(lines)

    @contextmanager
    def _new_directory(self) -> Iterator[Path]:
        """A directory for one try; an error inside leaves it, if it is not temporary."""
        if self._directory is None:
            with tempfile.TemporaryDirectory(prefix="eign-", ignore_cleanup_errors=True) as name:
                yield Path(name)
            return
        directory = _numbered(self._directory)
        yield directory
        if not self._keeps_all:
            shutil.rmtree(directory)


def _words(argv: Any) -> list[str]:
    """The arguments as texts, paths absolute."""
    if isinstance(argv, str | bytes) or not argv:
        raise ValueError(f"argv={argv!r}, expected a list: the program, then each argument by itself")
    return [part if isinstance(part, str) else str(Path(part).absolute()) for part in argv]


def _program(name: str, path: str | None) -> str:
    """The program, absolute if it was given by a path.

    Raises:
        FileNotFoundError: There is none.
    """
    found = shutil.which(name, path=path)
    if found is None and Path(name).is_file() and os.path.dirname(name):
        raise FileNotFoundError(f"{name} is no program: it may not be executed; chmod +x makes it one")
    if found is None:
        where = "there is no such file" if os.path.dirname(name) else "it is not on the PATH; give its path, ./name"
        raise FileNotFoundError(f"program {name!r} not found: {where}")
    return str(Path(found).absolute()) if os.path.dirname(name) else name


def _plain(point: Any, names: Sequence[str] | None) -> Point:
    """The point as JSON has it."""
    if isinstance(point, Mapping):
        return {str(name): float(value) for name, value in point.items()}
    values = [float(value) for value in point]
    if names is None:
        return values
    if len(names) != len(values):
        raise ValueError(f"names={list(names)}: {len(names)} names for points of {len(values)} coordinates")
    return dict(zip(names, values, strict=True))


def _last_lines(path: Path) -> list[str]:
    """The end of a text file, in lines that can be shown."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL * _LINE))
        text = file.read().decode(errors="replace").rstrip()
    return [line if len(line) <= _LINE else f"...{line[-_LINE:]}" for line in text.splitlines()[-_TAIL:]]


def _filled(part: str, paths: Mapping[str, str]) -> str:
    for placeholder, path in paths.items():
        part = part.replace(placeholder, path)
    return part


def _numbered(parent: Path) -> Path:
    """A new directory with the next number. Making one is atomic, so that processes do not get the same."""
    parent.mkdir(parents=True, exist_ok=True)
    number = max((int(path.name) for path in parent.iterdir() if path.name.isdecimal()), default=0)
    while True:
        number += 1
        try:
            (parent / f"{number:06d}").mkdir()
        except FileExistsError:
            continue
        return parent / f"{number:06d}"


def _signal_name(number: int) -> str:
    """The signal's name.

    >>> _signal_name(11)
    'SIGSEGV'
    """
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _evaluation(answer: Any, x: Point) -> Evaluation:
    """The answer, checked.

    >>> _evaluation({"value": 2.0, "gradient": {"b": 1}}, {"a": 0.0, "b": 1.0}).gradient
    {'b': 1.0}

    Raises:
        AnswerError: It is not what was agreed.
    """
    try:
        return Evaluation(**checked_answer(answer, len(x), list(x) if isinstance(x, dict) else None))
    except ValueError as error:
        raise AnswerError(f"answered: {error}") from None
