"""Settings for all tests: one thread a process (two processes run at once), and which cases hypothesis generates."""

import os
import signal

# Before NumPy is imported, and for the processes that tests start: on busy cores the threads of a BLAS wait for each
# other, and a product of small matrices costs ten times as much.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
# In the background of a shell SIGINT is ignored, and would be by all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile(
    "eign", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
# Other cases in every run, for `make bench`: --hypothesis-profile random -m hypothesis.
settings.register_profile("random", settings.get_profile("eign"), derandomize=False, max_examples=300, print_blob=True)
settings.load_profile("eign")
