"""Measures the CPU time of each module of tests, with all processes that it has started: `-p tests.cpu`.

Each lane of tests writes the result to `build/tests/<lane>.cpu.json`, as {module: seconds}. `--durations`
gives the elapsed time in seconds. If several modules share a service, its CPU time counts for the module that
runs at that moment.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

_LOOK_S = 1.0
"""To look at all processes takes some milliseconds, so tests that are shorter share one look."""
_TOLD = 20

_cpu_by_test = Counter[str]()


def cpu_s() -> float:
    """Returns the CPU in seconds of this process and of all that it has started, also of those that ended."""
    me = psutil.Process()
    found = 0.0
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            found += times.user + times.system + times.children_user + times.children_system
    return found


class _Looked:
    at_s = time.monotonic()
    cpu_s = 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """Counts what was used since the last look for this test: after each long test, and after each module."""
    result = yield
    ends_module = nextitem is None or nextitem.path != item.path
    if ends_module or time.monotonic() - _Looked.at_s > _LOOK_S:
        now_s = cpu_s()
        # A process whose parent was killed is nobody's child any more.
        _cpu_by_test[item.nodeid] += max(0.0, now_s - _Looked.cpu_s)
        _Looked.at_s, _Looked.cpu_s = time.monotonic(), now_s
    return result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says which tests took most, and writes what each module took."""
    modules = Counter[str]()
    for test, seconds in _cpu_by_test.items():
        modules[test.partition("::")[0]] += seconds
    if path := os.environ.get("TESTS_CPU"):
        Path(path).write_text(json.dumps(dict(modules.most_common())))
    terminalreporter.section(f"most CPU, of {sum(modules.values()) / 60:.1f} minutes")
    for test, seconds in _cpu_by_test.most_common(_TOLD):
        terminalreporter.write_line(f"{seconds:7.1f} s {test}")
