"""Set-up for all tests."""

from __future__ import annotations

import signal

from hypothesis import settings

# A shell that starts the tests in the background makes them, and every process they start, deaf to Ctrl-C; some of the
# tests are about Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Time is no test: a machine may be busy.
settings.register_profile("edrbo", deadline=None)
settings.load_profile("edrbo")
