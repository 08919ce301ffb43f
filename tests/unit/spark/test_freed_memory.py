"""Tests that a batch gets the memory that an earlier batch has freed, without page faults."""

from __future__ import annotations

import subprocess
import sys

ROUNDS = """
import resource, sys, threading
import numpy as np
from pipeline_runtime.spark.freed_memory import keep_freed_memory

def batch():
    return [np.ones(12_500) for _ in range(40)]  # 100 KB each

def faults():
    for _ in range(5):
        batch()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        batch()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

if sys.argv[1] == "kept":
    keep_freed_memory()
faults()
thread = threading.Thread(target=faults)
thread.start()
thread.join()
"""
PAGES = 20 * 40 * 100_000 // 4096
"""That all batches touch together."""


def faults(how: str) -> list[int]:
    done = subprocess.run([sys.executable, "-c", ROUNDS, how], capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def test_batches_get_the_memory_of_those_before_them_in_each_thread() -> None:
    assert faults("given back")[0] > PAGES // 4, "without it there is something to gain"
    assert max(faults("kept")) < PAGES // 20


IDLE = """
import threading
import numpy as np
from psutil import Process
from pipeline_runtime.spark.freed_memory import give_back, keep_freed_memory

def batch():
    made = [np.ones(12_500) for _ in range(200)]  # 100 KB each
    last = np.ones(12_500)  # of each thread's memory, behind what is freed
    del made
    return last

keep_freed_memory()
kept = [batch()]
thread = threading.Thread(target=lambda: kept.append(batch()))
thread.start()
thread.join()
before = Process().memory_info().rss
give_back()
print(before - Process().memory_info().rss)
"""


def test_a_process_without_a_batch_to_come_gives_the_memory_of_all_its_threads_back() -> None:
    done = subprocess.run([sys.executable, "-c", IDLE], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 1.5 * 200 * 100_000
