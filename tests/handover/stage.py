"""Three nodes in processes of their own, with a proxied line each, and one group under load.

Tests share them, but no test depends on another: each begins with a group that has an owner and a follower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipeline_runtime.model.spec import Pace
from tests.handover.control import Control
from tests.handover.nodes import EngineName
from tests.handover.rig import Group, running_rig

RATE = 50.0
"""Events per second, so that each batch has some. Faults come between batches, whatever their size."""
TICK_S = 0.1
_CAUGHT_UP_S = 450.0
"""On a busy machine, small batches may fall behind the load for as long as it lasts."""


class Stage:
    """A rig with a group, made when it is first needed. `directory` is a function that makes a directory."""

    def __init__(self, engine: EngineName, pace: Pace, directory: Callable[[], Path]) -> None:
        self._engine = engine
        self._pace = pace
        self._directory = directory
        self._open = ExitStack()
        self._control: Control | None = None

    def control(self) -> Control:
        """Returns when one node owns and another one follows closely."""
        if self._control is None:
            self._control = self._begin()
        self._control.restock()
        return self._control

    def _begin(self) -> Control:
        rig = self._open.enter_context(running_rig(("a", "b", "c"), self._directory(), self._engine))
        group = Group(rig.kafka, pace=self._pace)
        self._open.callback(group.close)
        control = Control(rig, group)
        control.log = print
        control.begin(rig.nodes["a"])
        group.load(RATE, TICK_S)
        return control

    def verify(self) -> None:
        """Checks the law, after each test."""
        if self._control is not None:
            self._control.verify()

    def verify_whole(self) -> None:
        """Checks that every input has its output, once, whatever was done to the group in between."""
        if self._control is None:
            return
        control, group = self._control, self._control.group
        control.restock()
        group.finish_load()
        judge, oracle = group.judge, group.judge.oracle

        def missing() -> str:
            return f"outputs for all {oracle.inputs} inputs: {oracle.outputs}, {oracle.verdict(final=True)}"

        control.rig.wait(lambda: judge.verdict(final=True).lost == 0, missing, _CAUGHT_UP_S)
        control.verify(final=True)
        assert oracle.outputs == oracle.inputs > 0

    def close(self) -> None:
        self._control = None
        self._open.close()


def running_stage(engine: EngineName, pace: Pace, factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(engine, pace, lambda: factory.mktemp(f"rig-{engine}"))
    try:
        yield stage
        stage.verify_whole()
    finally:
        stage.close()
