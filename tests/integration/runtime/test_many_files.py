"""A node of many groups has more files open than select() can tell apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.integration, pytest.mark.full]

# In a process of its own: Spark starts its callback server once in a process.
PROGRAM = """
import os, resource, sys, tempfile, threading
from pathlib import Path
from pipeline_runtime.spark.session import open_session

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
directory = Path(sys.argv[1])
sockets = tempfile.TemporaryDirectory()  # the directory's own path may be too long for them
session = open_session("many files", directory / "scratch", Path(sockets.name))
files = [open(os.devnull) for _ in range(1024)]
called = threading.Event()
writing = session.readStream.format("rate").load().writeStream
writing = writing.option("checkpointLocation", str(directory / "query"))
query = writing.foreachBatch(lambda frame, batch: called.set()).start()
while not called.wait(0.2) and query.isActive:
    pass
print("called" if called.is_set() else query.exception(), flush=True)
sockets.cleanup()
os._exit(0)
"""


def test_a_query_that_starts_when_a_thousand_files_are_open_is_called_back(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert ran.stdout.split("\n")[0] == "called", ran.stderr
