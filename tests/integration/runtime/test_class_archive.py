"""A node's Java starts from the classes that the install has kept, and without them where they do not fit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_runtime.spark.jars import java_executable
from pipeline_runtime.spark.session import CLASS_ARCHIVE, SMALL_MACHINE_JAVA_OPTIONS
from tests.running import PROJECT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

SESSION = """
import sys
from pathlib import Path
from pipeline_runtime.spark.session import open_session
directory = Path(sys.argv[1])
open_session("classes", directory / "scratch", directory).stop()
"""


@pytest.mark.full
def test_a_session_takes_most_classes_from_the_archive(tmp_path: Path) -> None:
    loaded = tmp_path / "loaded.txt"
    options = f"{SMALL_MACHINE_JAVA_OPTIONS} -Xlog:class+load:file={loaded}"
    environment = {**os.environ, "FOGLINE_JAVA_OPTIONS": options, "PYTHONPATH": str(PROJECT)}
    subprocess.run([sys.executable, "-c", SESSION, str(tmp_path)], env=environment, check=True)
    lines = [line for line in loaded.read_text().splitlines() if " org.apache.spark." in line]
    # Java keeps no lambda that can be serialized, as Scala's can.
    classes = [line for line in lines if "Lambda" not in line]
    kept = [line for line in classes if "shared objects file" in line]
    assert len(kept) > len(classes) * 0.9 > 0


def test_java_does_without_an_archive_that_does_not_fit(tmp_path: Path) -> None:
    other = tmp_path / "other.jsa"
    other.write_text("no archive")
    for archive in (CLASS_ARCHIVE, other):  # the first one is of another class path
        command = [java_executable(), f"-XX:SharedArchiveFile={archive}", "-version"]
        assert subprocess.run(command, stdin=subprocess.DEVNULL).returncode == 0
