"""The user's function as a task: what it may return, what it may raise, and how both travel."""

import pickle
import subprocess
import sys
import threading

import cloudpickle
import numpy as np
import pytest

from eign.evaluation import AnswerError, Evaluation, Parcel, Raised, Task

X = np.array([1.0, 2.0])


def test_an_answer_becomes_plain_numbers():
    told = Task(lambda x: (np.float32(2.5), [1, None]))(X)
    assert told.value == 2.5
    np.testing.assert_array_equal(told.gradient, [1.0, np.nan])
    assert (told.value_variance, told.gradient_variance) == (None, None)
    assert np.isnan(Task(lambda x: (None, None))(X).value)
    assert Task(lambda x: (1.0, {"a": 2.0}))(X).gradient == {"a": 2.0}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_failed_value_has_no_gradient_unless_it_is_said(value):
    assert Task(lambda x: (value, np.zeros(2)))(X).gradient is None
    assert Task(lambda x: value, jac=lambda x: pytest.fail("an adjoint of nothing"))(X).gradient is None
    np.testing.assert_array_equal(Task(lambda x: Evaluation(value, [1.0, 2.0]))(X).gradient, [1.0, 2.0])


def test_an_evaluation_says_more():
    told = Task(lambda x: Evaluation(1, x, value_variance=0.25, gradient_variance=[1, 2]))(X)
    assert (told.value, told.value_variance) == (1.0, 0.25)
    np.testing.assert_array_equal(told.gradient, X)
    np.testing.assert_array_equal(told.gradient_variance, [1.0, 2.0])
    assert Task(lambda x: Evaluation(3.0))(X).gradient is None


@pytest.mark.parametrize("jac", [None, False])
def test_jac_says_where_the_gradient_comes_from(jac):
    def rich(x):
        return Evaluation(1.0, x, value_variance=0.5, gradient_variance=[1.0, 1.0])

    without = Task(rich, jac)(X)
    assert (without.gradient, without.gradient_variance, without.value_variance) == (None, None, 0.5)
    np.testing.assert_array_equal(Task(rich, lambda x: 3 * x)(X).gradient, 3 * X)


def test_what_the_function_raises_is_a_value():
    def broken(x):
        raise ZeroDivisionError("no mesh")

    answer = Task(broken)(X)
    assert isinstance(answer, Raised)
    assert isinstance(answer.error, ZeroDivisionError)


def test_what_breaks_the_agreement_is_raised():
    def own(x):
        raise AnswerError("wrong keys")

    with pytest.raises(TypeError, match=r"return \(value, gradient\)"):
        Task(lambda x: 1.0)(X)
    with pytest.raises(ValueError, match="value_variance of shape"):
        Task(lambda x: Evaluation(1.0, value_variance=[1.0, 2.0]))(X)
    with pytest.raises(AnswerError, match="wrong keys"):
        Task(own)(X)


def test_a_task_travels_by_plain_pickle():
    offset = 0.5
    arrived = pickle.loads(pickle.dumps(Task(lambda x, power: (offset + x[0] ** power, x), args=(3,))))
    assert isinstance(arrived, Parcel)
    assert arrived(X).value == 1.5


def test_state_of_a_function_stays_with_its_process():
    seen = []
    arrived = pickle.loads(pickle.dumps(Task(lambda x: (seen.append(1) or len(seen), None))))
    assert [arrived(X).value, pickle.loads(pickle.dumps(arrived))(X).value] == [1.0, 2.0]
    assert seen == []


def test_what_cannot_travel_is_told():
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"cannot be sent to another process: .*lock.* or use threads"):
        Task(lambda x: (lock.locked(), None)).pack()


def refuse():
    raise TypeError("missing 1 required keyword-only argument")


class FussyError(Exception):
    """Unpickling it fails, as for many exceptions with arguments of their own."""

    def __init__(self, code, *, where):
        super().__init__(f"code {code} in {where}")

    def __reduce__(self):
        # Said outright: where `distributed` is imported, its pickling mends exceptions that only forget an argument.
        return refuse, ()


def sent(error):
    """What arrives of a function that raises it."""

    def broken(x):
        raise error

    return pickle.loads(pickle.dumps(Task(broken)(X))).error


def test_an_error_arrives_with_its_traceback():
    arrived = sent(KeyError("mesh"))
    assert type(arrived) is KeyError
    assert arrived.args == ("mesh",)
    assert "in broken" in arrived.__notes__[0]


def test_an_error_that_cannot_travel_arrives_as_its_text():
    arrived = sent(FussyError(3, where="solver"))
    assert type(arrived) is RuntimeError
    assert "FussyError: code 3 in solver" in str(arrived)


def test_a_worker_starts_without_torch():
    """Two seconds for each process that is started; SciPy and the rest of eign stay out too."""
    pickled = cloudpickle.dumps(Task(lambda x: (float(len(x)), x)))
    program = (
        "import pickle, sys; task = pickle.loads(bytes.fromhex(sys.stdin.read())); assert task([1, 2]).value == 2; "
        "print([name for name in sys.modules if name in ('torch', 'scipy') or name.startswith('eign.')])"
    )
    result = subprocess.run([sys.executable, "-c", program], input=pickled.hex(), capture_output=True, text=True)
    assert result.stdout == "['eign._version', 'eign.arrays', 'eign.evaluation']\n", result.stderr


def test_where_the_simulation_failed_constraints_may_fail_too():
    """They may need its result; what they do know is kept."""

    class Stress:
        names = ("stress",)

        def values_and_gradients(self, x):
            raise RuntimeError("no forward state")

    failed = Task(lambda x: None, jac=None, constraints=(Stress(),))(X)
    assert np.isnan(failed.value)
    assert np.isnan(failed.constraints["stress"])
    assert isinstance(Task(lambda x: 1.0, jac=None, constraints=(Stress(),))(X), Raised)
