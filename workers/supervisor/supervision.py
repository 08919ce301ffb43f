"""Starts processes stage by stage, restarts those that crash, and stops all of them in order."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import psutil

from workers.supervisor.console import Console
from workers.supervisor.processes import Child, ProcessSpec

_TICK_S = 0.1
_BACK_OFF_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_STEADY_S = 60.0  # a process that ran for this long starts again without a long pause
_KILL_WAIT_S = 5.0
_START_CRASHES_MAX = 2

Stage = Sequence[ProcessSpec]


@dataclass
class _Slot:
    """A place in the process table; its child is replaced after a crash."""

    spec: ProcessSpec
    child: Child
    crashes: int = 0
    restart_at_s: float | None = None
    settled: bool = False  # the start no longer waits for it


class _Stopped(Exception):
    """Somebody wants everything to stop."""


class _StartFailed(Exception):
    """An essential process did not come up."""


class Supervision:
    """Runs on the main thread, which forks all children and gets the signals.

    `stages` start one after the other, the processes of a stage together. `started` is called once, when all
    of them are ready.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        console: Console,
        cwd: Path,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        self._stages = stages
        self._console = console
        self._cwd = cwd
        self._started = started
        self._slots: list[_Slot] = []
        self._stop_requests = 0

    def run(self) -> int:
        """Runs until SIGINT or SIGTERM. Returns the exit code, which is 1 if the start failed."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # we write to a terminal from the background
        code = 0
        try:
            for stage in self._stages:
                self._start(stage)
            self._started()
            while True:
                self._tick()
        except _Stopped:
            self._console.say("Stopping ... (a second Ctrl-C kills at once)")
        except _StartFailed:
            self._console.say("The start is given up. What was started is stopped. Your data is kept.")
            code = 1
        self._stop()
        return code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop_requests += 1

    # --- starting and watching ------------------------------------------------------------------
    def _start(self, stage: Stage) -> None:
        self._console.say(f"Starting {', '.join(spec.label for spec in stage)}")
        slots = [_Slot(spec, self._child(spec)) for spec in stage]
        self._slots += slots
        while not all(slot.settled for slot in slots):
            self._tick()

    def _child(self, spec: ProcessSpec) -> Child:
        return Child(spec, lambda text: self._console.line(spec.name, text), str(self._cwd))

    def _tick(self) -> None:
        if self._stop_requests:
            raise _Stopped
        for slot in self._slots:
            if slot.restart_at_s is not None:
                if time.monotonic() >= slot.restart_at_s:
                    slot.restart_at_s, slot.child = None, self._child(slot.spec)
                continue
            slot.child.step()
            self._look_at(slot)
        time.sleep(_TICK_S)

    def _look_at(self, slot: _Slot) -> None:
        spec, child = slot.spec, slot.child
        if child.done and not child.ready_told:
            child.ready_told = slot.settled = True
            self._console.say(f"{spec.label} {'done' if spec.once else 'ready'} {child.ready_after_s:.1f} s")
        if child.fault is not None and not child.fault_told:
            child.fault_told = True
            self._explain(child)
            self._console.say(f"{spec.label}: {child.fault}")
            if spec.essential and not slot.settled:
                raise _StartFailed
            slot.settled = True
        never_ran = child.fault is not None and child.pid is None
        if not spec.once and (child.code is not None or never_ran):
            self._crashed(slot)

    def _explain(self, child: Child) -> None:
        """Shows what it printed last, unless it never ran."""
        if child.code is not None:
            child.read_to_the_end()
        if child.pid is not None:
            self._console.explain(child.spec.name)

    def _crashed(self, slot: _Slot) -> None:
        """Ends what the process left behind, and starts it again later.

        It never gives up: the network, a disk or a broker may come back at night, when nobody is there.
        """
        spec, child = slot.spec, slot.child
        child.kill()
        self._explain(child)
        if not slot.settled and slot.crashes >= _START_CRASHES_MAX:
            self._console.say(f"{spec.label} ended {slot.crashes + 1} times. Its log above says why.")
            if spec.essential:
                raise _StartFailed
            slot.settled = True
        if time.monotonic() - child.began_s > _STEADY_S:
            slot.crashes = 0
        pause_s = _BACK_OFF_S[min(slot.crashes, len(_BACK_OFF_S) - 1)]
        slot.crashes += 1
        slot.restart_at_s = time.monotonic() + pause_s
        how = f"ended with {describe_code(child.code)}" if child.code is not None else "could not be started"
        self._console.say(f"{spec.label} {how}; starting it again in {pause_s:g} s")

    # --- stopping -------------------------------------------------------------------------------
    def _stop(self) -> None:
        """Stops all processes rank by rank: SIGTERM, a wait, SIGKILL to the group.

        Then kills what is left.
        """
        requests = self._stop_requests
        descendants = psutil.Process().children(recursive=True)
        for rank in sorted({slot.spec.stop_rank for slot in self._slots}):
            children = [slot.child for slot in self._slots if slot.spec.stop_rank == rank]
            self._stop_together([child for child in children if child.running], requests)
            for child in children:
                child.kill()
        self._kill_left_overs(descendants)
        self._console.say("Stopped. `make up` continues with the same data.")

    def _stop_together(self, children: list[Child], requests: int) -> None:
        began_s = time.monotonic()
        for child in children:
            child.terminate()
        left = children
        while left:
            for child in left:
                child.step()
            hurry = self._stop_requests > requests
            for child in left:
                late = time.monotonic() - began_s > child.spec.stop_timeout_s
                if child.running and (late or hurry):
                    if late:
                        self._console.say(f"{child.spec.label} did not stop in time and was killed")
                    child.kill()
            left = [child for child in left if child.running]
            if left:
                time.sleep(_TICK_S / 2)
        if children:
            names = ", ".join(child.spec.label for child in children)
            self._console.say(f"{names} stopped {time.monotonic() - began_s:.1f} s")

    def _kill_left_overs(self, known: Iterable[psutil.Process]) -> None:
        """Kills processes that left their group, e.g. Python workers whose parents were killed."""
        left = {*known, *psutil.Process().children(recursive=True)}
        for process in left:
            try:
                process.kill()  # psutil compares start times, so a reused id is safe
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(list(left), timeout=_KILL_WAIT_S)


def describe_code(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"code {code}"
