"""A signal ends the process whichever of its threads the kernel hands it to."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import signal, threading, time
from workers.stopping import set_by_signals, wait_for

stopping, waits = threading.Event(), threading.Event()

def other_thread():
    waits.wait()
    time.sleep(0.5)  # until the main thread waits; too soon would only let the test pass
    signal.pthread_kill(threading.get_ident(), signal.{signal})
    time.sleep(3600)

threading.Thread(target=other_thread, daemon=True).start()
set_by_signals(stopping)
waits.set()
wait_for(stopping)
print("stopped")
"""


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
def test_a_signal_to_another_thread_stops_the_main_thread(signal: str) -> None:
    program = [sys.executable, "-c", PROGRAM.format(signal=signal)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (ended.stdout.strip(), ended.returncode) == ("stopped", 0), ended.stderr
