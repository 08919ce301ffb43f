"""A signal ends the process whichever of its threads the kernel hands it to."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.waiting import PATIENCE_S

PROGRAM = """
import signal, sys, threading, time, traceback
from pathlib import Path
from workers.stopping import set_by_signals, wait_for

stopping = threading.Event()

def main_thread_waits():
    main = threading.main_thread()
    calls = [frame.name for frame in traceback.extract_stack(sys._current_frames()[main.ident])]
    state = Path(f"/proc/self/task/{{main.native_id}}/stat").read_text().rpartition(")")[2].split()[0]
    return "wait_for" in calls and state == "S"

def other_thread():
    while not main_thread_waits():  # too soon would only let the test pass
        time.sleep(0.01)
    signal.pthread_kill(threading.get_ident(), signal.{signal})
    time.sleep(3600)

threading.Thread(target=other_thread, daemon=True).start()
set_by_signals(stopping)
wait_for(stopping)
print("stopped")
"""


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
def test_a_signal_to_another_thread_stops_the_main_thread(signal: str) -> None:
    program = [sys.executable, "-c", PROGRAM.format(signal=signal)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ended.stdout.strip(), ended.returncode) == ("stopped", 0), ended.stderr
