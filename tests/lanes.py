"""Every test, in six lanes: `make test`, and with the static checks `make check`.

    python -m tests.lanes [--static] [--full]

With `--full` (`make check-full`) the tests with the mark `full` run as well: more cases of what others show.
Those with made-up examples take three times as many then (`tests/chosen.py`).

A lane is a process of its own, so what its tests start has ports (`tests/ports.py`), data directories and
databases of its own. A lane often waits, for Spark or for control's deadlines, so four run beside each other
on two cores. With five, a start of Fogline took minutes. The lane `rest` has what the others leave.

What a lane says stays in `build/tests/<lane>.log`, its results in `build/tests/<lane>.xml`, and the CPU of
each module in `build/tests/<lane>.cpu.json`. The tables and the one line of results at the end are all that
most people need.

A test in which the browser waited in vain for its page runs once more, and the end names it. No other test
does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

import psutil

from tests.chosen import FULL

PROJECT = Path(__file__).resolve().parents[1]
RESULTS = PROJECT / "build" / "tests"
# Below the ports that Linux gives to those who ask for any, from 32,768 on.
_PORTS_FIRST, _PORTS_PER_LANE = 20_000, 2_000
_AT_ONCE = 4
_GRACE_S = 60
_MEMORY_EVERY_S = 1.0
_REASON_CHARACTERS = 300
_LAST_LINES = 200
_LINES_OF_WHY = 10
_MODULES_TOLD = 20
_REFERENCE_ROUNDS = 10_000_000
# What Playwright says when a page did not come to what was awaited. A row that is lost is no such thing.
_PAGE_WAITED_FOR = (
    r"^AssertionError: Locator expected",
    r"^AssertionError: Page ",
    r"^TimeoutError: .*Timeout",
)
_ALL_FULL = re.compile(r"^pytestmark = .*\bpytest\.mark\.full\b", re.MULTILINE)


@dataclass
class Lane:
    """`paths` of tests but for those in `without`; () takes all that the other lanes leave. `before` runs
    first, in the same lane."""

    name: str
    paths: tuple[str, ...]
    without: tuple[str, ...] = ()
    niceness: int = 0
    before: list[list[str]] = field(default_factory=list)
    minutes: float = 0.0
    cpu_minutes: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return RESULTS / f"{self.name}.log"

    @property
    def results(self) -> Path:
        return RESULTS / f"{self.name}.xml"

    @property
    def cpu(self) -> Path:
        return RESULTS / f"{self.name}.cpu.json"


def lanes(static_checks: bool) -> list[Lane]:
    """Returns them in the order in which they begin.

    The last two compute all the time, and hardly wait. So they fill both cores up to the end of a run, beside
    whatever is left of the others.
    """
    make = ["make", "--no-print-directory"]
    checks = [[*make, "static-check"]] if static_checks else []
    handover = "tests/integration/handover"
    restorations = "tests/integration/workers/test_restorations.py"
    # In this order: once a browser is open, an event loop runs in the process, where Django refuses to work.
    browser = (
        *(f"{handover}/test_faults_with_spark.py", f"{handover}/test_rig.py"),
        *(restorations, "tests/browser"),
    )
    engine = ("tests/integration/runtime", "tests/integration/pipelines")
    control = ("tests/integration/workers", f"{handover}/test_faults.py")
    return [
        Lane("browser", browser),
        Lane("engine", engine),
        Lane("control", control, without=(restorations,)),
        Lane("services", ("tests/contract", "tests/integration/platform")),
        # With the others' priority, these would keep them from their deadlines.
        Lane("rest", (), niceness=5, before=[[*make, "test-browser-code"]]),
        Lane("simulation", ("tests/simulation", "tests/unit/imports"), niceness=5, before=checks),
    ]


def pytest_command(lane: Lane, all_lanes: list[Lane], full: bool) -> list[str]:
    taken = lane.without if lane.paths else [path for other in all_lanes for path in other.paths]
    # Not by pytest's testpaths: what those name themselves is not ignored.
    chosen = [*(lane.paths or ["tests"]), *(f"--ignore={path}" for path in taken)]
    options = ["--durations=15", f"--junitxml={lane.results}", "-p", "no:cacheprovider", "-p", "tests.cpu"]
    options += ["-raR", "--reruns=1", *(f"--only-rerun={each}" for each in _PAGE_WAITED_FOR)]
    options += [] if full else ["-m", "not full"]
    return [sys.executable, "-m", "pytest", *options, *chosen]


class Run:
    """The lanes at work, each as soon as there is room. `stop` ends them, so that they still stop what they
    have started."""

    def __init__(self, all_lanes: list[Lane], full: bool) -> None:
        self._lanes = all_lanes
        self._full = full
        self._console = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._room = ThreadPoolExecutor(_AT_ONCE)
        self._stopped = False

    def go(self) -> None:
        at_work = [self._room.submit(self._lane, number, lane) for number, lane in enumerate(self._lanes)]
        for each in at_work:
            each.result()

    def stop(self) -> None:
        self._stopped = True
        self._room.shutdown(wait=False, cancel_futures=True)
        running = list(self._running)
        for process in running:
            process.send_signal(signal.SIGINT)
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
            process.kill()

    def _lane(self, number: int, lane: Lane) -> None:
        begun = time.monotonic()
        first = _PORTS_FIRST + number * _PORTS_PER_LANE
        ports = f"{first}-{first + _PORTS_PER_LANE}"
        environment = {**os.environ, "TESTS_PORTS": ports, "TESTS_CPU": str(lane.cpu), "NO_COLOR": "1"}
        environment |= {FULL: "1"} if self._full else {}
        with lane.log.open("w") as log:
            for command in [*lane.before, pytest_command(lane, self._lanes, self._full)]:
                if self._stopped:
                    break
                code, last = self._command(lane, command, environment, log)
                if code:
                    before = command in lane.before
                    lane.failures += [f"{command[-1]} failed:", *why(last)] if before else ["pytest failed"]
        lane.minutes = (time.monotonic() - begun) / 60
        self._say(lane, [f"done after {lane.minutes:.1f} minutes\n"])

    def _command(
        self, lane: Lane, command: list[str], environment: dict[str, str], log: TextIO
    ) -> tuple[int, list[str]]:
        """Its exit code, and the last lines of what it printed."""
        process = subprocess.Popen(
            ["nice", "-n", str(lane.niceness), *command],
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._running.add(process)
        assert process.stdout is not None
        last = deque[str](maxlen=_LAST_LINES)
        held: list[str] = []
        rulers = 0
        for line in process.stdout:
            log.write(line)
            log.flush()
            last.append(line.rstrip())
            rulers += line.startswith("=====")
            # pytest's second ruler ends its progress: what follows is read in one piece, or not at all.
            held.append(line)
            if rulers < 2:
                self._say(lane, held)
                held = []
        self._say(lane, held)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self._running.discard(process)
        lane.cpu_minutes += (usage.ru_utime + usage.ru_stime) / 60
        return process.returncode, list(last)

    def _say(self, lane: Lane, lines: list[str]) -> None:
        with self._console:
            for line in lines:
                if line.strip():
                    print(f"[{lane.name}] {line}", end="", flush=True)


class MemoryPeak(threading.Thread):
    """How much less memory was free at the worst moment than at the beginning."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._before = self._least = psutil.virtual_memory().available
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(_MEMORY_EVERY_S):
            self._least = min(self._least, psutil.virtual_memory().available)

    def finish_gib(self) -> float:
        self._over.set()
        self.join()
        return (self._before - self._least) / 2**30


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0


def counts_of(results: Path) -> Counts:
    """Returns the counts in a JUnit file, or only 0 if pytest wrote none."""
    if not results.exists():
        return Counts()
    passed = failed = skipped = 0
    for suite in ElementTree.parse(results).getroot():
        wrong = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        left_out = int(suite.get("skipped", 0))
        failed, skipped = failed + wrong, skipped + left_out
        passed += int(suite.get("tests", 0)) - wrong - left_out
    return Counts(passed, failed, skipped)


def why(last: list[str]) -> list[str]:
    """Returns those of a failed command's last lines that name a failed test, else the very last ones."""
    said = [line for line in last if line.strip()]
    return [line.strip() for line in said if " FAIL " in line][:_LINES_OF_WHY] or said[-_LINES_OF_WHY:]


def failures_in(results: Path) -> list[str]:
    """Each test that failed, with how its reason begins; [] where pytest did not come to write any."""
    if not results.exists():
        return []
    found = []
    for case in ElementTree.parse(results).iter("testcase"):
        for wrong in (*case.findall("failure"), *case.findall("error")):
            why = " ".join((wrong.get("message") or "").split())[:_REASON_CHARACTERS]
            found.append(f"{case.get('classname')}::{case.get('name')}: {why}")
    return found


def second_tries(log: Path) -> list[str]:
    """Each test that ran once more, as the summary in a lane's log names it."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line.removeprefix("RERUN ") for line in lines if line.startswith("RERUN ")]


def misplaced(all_results: list[Path], tests: Path = PROJECT / "tests", *, full: bool = False) -> list[str]:
    """The modules of tests that ran in several lanes, or in none. Without `full`, a module may say that all
    its tests are for `make check-full`."""
    ran = Counter[str]()
    for results in all_results:
        if results.exists():
            ran.update({str(case.get("classname")) for case in ElementTree.parse(results).iter("testcase")})
    there = {
        ".".join(path.relative_to(tests.parent).with_suffix("").parts)
        for path in tests.rglob("test_*.py")
        if full or not _ALL_FULL.search(path.read_text())
    }
    twice = [f"{module} ran in {lanes_of_it} lanes" for module, lanes_of_it in ran.items() if lanes_of_it > 1]
    return sorted([*twice, *(f"{module} ran in no lane" for module in there - ran.keys())])


def most_cpu(all_cpu: list[Path]) -> list[str]:
    """The modules that took the most CPU, as lines: minutes and name."""
    took = Counter[str]()
    for path in all_cpu:
        if path.exists():
            took.update(json.loads(path.read_text()))
    return [f"{seconds / 60:6.1f} {module}" for module, seconds in took.most_common(_MODULES_TOLD)]


def reference_s() -> float:
    """Seconds of CPU for a fixed loop: machines of one kind differ by a factor of two."""
    begun = time.process_time()
    value = 1
    for number in range(_REFERENCE_ROUNDS):
        value = (value * 31 + number) & 0xFFFF
    return time.process_time() - begun


def report(
    all_lanes: list[Lane], minutes: float, memory_gib: float, reference: tuple[float, float], *, full: bool
) -> int:
    """Prints what came of it; the exit code."""
    print(f"\n{'lane':8} {'passed':>7} {'failed':>7} {'skipped':>8} {'minutes':>8} {'CPU minutes':>12}")
    counts = [counts_of(lane.results) for lane in all_lanes]
    for lane, count in zip(all_lanes, counts, strict=True):
        print(
            f"{lane.name:8} {count.passed:7} {count.failed:7} {count.skipped:8}"
            f" {lane.minutes:8.1f} {lane.cpu_minutes:12.1f}"
        )
    print(
        f"{minutes:.1f} minutes in all; at the peak {memory_gib:.1f} GiB more memory in use than before;"
        f" reference loop {reference[0]:.2f} s before, {reference[1]:.2f} s after."
    )
    print("CPU minutes of the modules that took most:", *most_cpu([lane.cpu for lane in all_lanes]), sep="\n")
    for lane in all_lanes:
        if lane.failures:
            print(
                f"{lane.name}, all of it in {os.path.relpath(lane.log, PROJECT)}:", *lane.failures, sep="\n  "
            )
    for test in (test for lane in all_lanes for test in second_tries(lane.log)):
        print(f"ran once more, since its page did not come in time: {test}")
    wrong = misplaced([lane.results for lane in all_lanes], full=full)
    failures = [failure for lane in all_lanes for failure in failures_in(lane.results)]
    for sentence in (*wrong, *failures):
        print(sentence)
    passed = sum(count.passed for count in counts)
    failed = sum(count.failed for count in counts)
    skipped = sum(count.skipped for count in counts)
    if skipped:
        print("No test may skip: a missing service is a failure.")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return int(bool(failed or skipped or wrong or any(lane.failures for lane in all_lanes)))


def main() -> int:
    all_lanes = lanes("--static" in sys.argv[1:])
    RESULTS.mkdir(parents=True, exist_ok=True)
    for lane in all_lanes:
        lane.results.unlink(missing_ok=True)
        lane.cpu.unlink(missing_ok=True)
    before_s = reference_s()
    memory, begun = MemoryPeak(), time.monotonic()
    memory.start()
    full = "--full" in sys.argv[1:]
    run = Run(all_lanes, full)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run.go()
    except BaseException:
        run.stop()
        raise
    minutes = (time.monotonic() - begun) / 60
    return report(all_lanes, minutes, memory.finish_gib(), (before_s, reference_s()), full=full)


if __name__ == "__main__":
    sys.exit(main())
