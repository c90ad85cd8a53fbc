"""Random sequences find faults where there are some, and none in a first look at every method."""

import json
import sys

import numpy as np
import pytest

from eign.strategies.registry import methods
from eign.strategies.sampling import UniformRandom
from eign.strategies.strategy import Proposal
from eign.study.study import Study
from eign_lab.studies import random_sequences
from eign_lab.studies.random_sequences import BLOCK, fault_of, main, method_of


def test_every_method_has_its_share():
    assert {method_of(number) for number in range(72)} == set(methods())


@pytest.mark.parametrize("number", [*range(36), 82, 187, 493, 779, 3386])
def test_no_fault(number):
    assert fault_of(number) is None


def number_of(method):
    return next(number for number in range(100, 200) if method_of(number) == method)


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (lambda state: Proposal(np.full(state.dim, np.nan), "random"), "ValueError"),
        (lambda state: 1 / 0, "MethodFailedWarning"),
        (lambda state: Proposal(np.full(state.dim, 0.5) * np.float64(1e308) * 10 / np.inf, "random"), "RuntimeWarning"),
    ],
    ids=["nan", "exception", "warning"],
)
def test_a_broken_method_is_a_fault(monkeypatch, broken, error):
    monkeypatch.setattr(UniformRandom, "propose_one", lambda self, state, data, pending: (broken(state), state))
    fault = fault_of(number_of("random"))
    assert fault is not None
    assert fault["method"] == "random"
    assert error in (fault["error"], fault["text"].split(":")[0])


def test_a_point_outside_is_a_fault(monkeypatch):
    monkeypatch.setattr(Study, "ask", lambda self, count: np.tile(2 * self.box.upper - self.box.lower, (count, 1)))
    assert fault_of(number_of("sobol"))["error"] == "FaultError"


def test_a_lost_evaluation_is_a_fault(monkeypatch):
    monkeypatch.setattr(Study, "tell", lambda self, told: None)
    assert fault_of(number_of("sobol"))["error"] == "FaultError"


def test_what_is_in_the_results_is_not_run_again(monkeypatch, tmp_path, capsys):
    results, ran = tmp_path / "results.jsonl", []
    monkeypatch.setattr(random_sequences, "fault_of", lambda number: ran.append(number))
    words = ["random_sequences", "--results", str(results), "--count"]
    monkeypatch.setattr(sys, "argv", [*words, str(BLOCK)])
    assert not main()
    monkeypatch.setattr(sys, "argv", [*words, str(2 * BLOCK)])
    assert not main()
    assert ran == list(range(2 * BLOCK))
    assert [json.loads(line)["first"] for line in results.read_text().splitlines()] == [0, BLOCK]
    assert capsys.readouterr().out.splitlines()[-1] == f"{2 * BLOCK} sequences, 0 with a fault "
