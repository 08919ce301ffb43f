"""What a batch frees is there for the next one, without a page fault."""

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
    assert faults("given back")[0] > PAGES // 2, "without it there is something to gain"
    assert max(faults("kept")) < PAGES // 20
