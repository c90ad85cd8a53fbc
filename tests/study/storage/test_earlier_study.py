"""Studies that an earlier version wrote are read bit for bit and go on as that version would have gone on."""

import json

import numpy as np
import pytest

from eign import Optimizer
from eign.strategies.auto.memory import VERSION
from eign.study.handle import handle
from eign.study.storage.study_file import read_study

from . import earlier_study

EXPECTED = json.loads((earlier_study.DATA / "expected.json").read_text())


@pytest.fixture(params=earlier_study.METHODS)
def method(request):
    return request.param


@pytest.fixture
def path(method, tmp_path):
    return earlier_study.unpack(method, tmp_path)


def test_it_is_read_bit_for_bit(path, method):
    expected = {name: value for name, value in EXPECTED[method].items() if name != "next"}
    assert earlier_study.contents(Optimizer.view(path)) == expected
    with Optimizer.resume(path) as opt:
        assert earlier_study.contents(opt) == expected
        assert opt.box == earlier_study.BOX
        assert opt.method == method


def test_it_goes_on_as_the_version_that_wrote_it(path, method):
    """The points up to rounding: a millionth of the box, along the logarithm where the box is in logarithms."""
    with Optimizer.resume(path) as opt:
        points = earlier_study.continued(opt)
    np.testing.assert_array_equal(points[:2], EXPECTED[method]["pending"])
    if method == "auto":  # another method since: it goes on from the data
        earlier_study.BOX.to_unit(points)  # refuses points outside
        assert set(opt.reasons[-3:]) <= {"global", "local", "restart"}
        assert handle(opt).state.memory["version"] == VERSION
        return
    np.testing.assert_allclose(
        earlier_study.BOX.to_unit(points[2:]), earlier_study.BOX.to_unit(EXPECTED[method]["next"]), rtol=0, atol=1e-6
    )


def test_the_continuation_is_kept_like_the_rest(path):
    with Optimizer.resume(path) as opt:
        earlier_study.continued(opt)
        history, reasons = opt.history, opt.reasons
    with Optimizer.resume(path) as opt:
        assert opt.history == history
        assert opt.reasons == reasons
        assert len(opt.history) == 19


def test_a_study_of_format_2_is_read_and_goes_on_in_the_format_of_today(tmp_path):
    """With a retraction, a budget, and nothing of constraints."""
    path = earlier_study.unpack("format-2", tmp_path)
    with Optimizer.resume(path) as opt:
        assert (len(opt.history), len(opt.pending), opt.history.n_failed) == (5, 2, 1)
        assert handle(opt).definition.budget == 20
        assert not len(handle(opt).definition.constraints)
        assert handle(opt).state.limits == []
        points = earlier_study.continued(opt)
    assert read_study(path).definition.keys().isdisjoint({"constraints", "linear"})
    again = Optimizer.view(path)
    np.testing.assert_array_equal(again.history.x[-5:], points)
