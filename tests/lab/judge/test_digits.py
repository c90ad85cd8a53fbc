"""Nine digits from a point of the optimum's basin: the starts, the counts, and what is kept of them."""

from pathlib import Path

import numpy as np
import pytest

from eign_lab.judge import digits
from eign_lab.judge.digits import DISTANCE, Pair, case_of, descent, digits_table, read, run, smooth_cases, start_near


def test_smooth_problems_have_a_place_to_begin_from() -> None:
    names = smooth_cases()
    assert {"rosenbrock-6", "shekel-4-rotated", "corner-6"} <= set(names)
    assert not {"ackley-14", "sharp-ridge-6", "hartmann-6-noise-1", "cartpole-13", "lennard-jones-12"} & set(names)


@pytest.mark.parametrize(("name", "seed"), [("plateau-4", 100), ("bbob_f001_d05", 104), ("griewank-10", 101)])
def test_starts_are_at_their_distance_in_the_basin(name: str, seed: int) -> None:
    case = case_of(name, seed)
    assert case.problem.optimizers is not None
    u = start_near(case, seed)
    assert np.linalg.norm(u - case.problem.bounds.to_unit(case.problem.optimizers[0])) == pytest.approx(DISTANCE)
    assert np.array_equal(u, start_near(case, seed))
    assert min(descent(case, u)) < 1e-6 * case.scale


def test_both_get_there() -> None:
    pair = run("plateau-4", 100)
    assert pair["auto"] is not None
    assert pair["l_bfgs_b"] is not None
    assert 2 < pair["l_bfgs_b"] < 15
    assert 2 < pair["auto"] < 15
    assert pair["local"] <= pair["auto"] - 1


def test_who_does_not_get_there_counts_as_the_most() -> None:
    pairs = [
        Pair(problem="a", seed=100, auto=10, local=9, l_bfgs_b=20),
        Pair(problem="a", seed=101, auto=20, local=9, l_bfgs_b=None),
        Pair(problem="b", seed=100, auto=None, local=5, l_bfgs_b=100),
    ]
    table = digits_table(pairs)
    assert table.rows == (("a", "15", "9", "110", "0.30", "2/2", "1/2"), ("b", "200", "5", "100", "2.00", "0/1", "1/1"))
    assert "over 2 problems: 1.15" in table.note
    assert "below 1 on 1, above on 1." in table.note


def test_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[int] = []

    def quick(name: str, seed: int) -> Pair:
        done.append(seed)
        return Pair(problem=name, seed=seed, auto=5, local=4, l_bfgs_b=5)

    monkeypatch.setattr(digits, "run", quick)
    file = tmp_path / "digits.jsonl"
    file.write_text('{"problem": "plateau-4", "seed": 101, "auto": 5, "local": 4, "l_bfgs_b": 5}\n')
    monkeypatch.setattr("sys.argv", ["", "--problems", "plateau-4", "--results", str(file)])
    for _ in range(2):
        digits.main()
    assert done == [100, 102, 103, 104]
    assert len(read(file)) == 5
    assert "| plateau-4 | 5 | 4 | 5 | 1.00 | 5/5 | 5/5 |" in capsys.readouterr().out
