"""Studies that an earlier version wrote are read bit for bit and go on as that version would have gone on."""

import json

import numpy as np
import pytest

from eign import Optimizer

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
