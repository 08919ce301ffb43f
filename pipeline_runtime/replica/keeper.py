"""Answers the Python processes that run a group's tasks, for a replica."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pipeline_runtime.batch.gate_messages import (
    GroupDescription,
    KeepStates,
    Payload,
    RecordWaits,
    Slice,
    SliceRead,
    TaskPart,
)
from pipeline_runtime.batch.tasks import KeysShared, Tasks
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.formats.schema_registry import Registry
from pipeline_runtime.replica.batch_inputs import BatchInputs
from pipeline_runtime.replica.batches import Batches
from pipeline_runtime.replica.local_state import LocalStateDamaged
from pipeline_runtime.replica.run_registries import Place, RunRegistries
from pipeline_runtime.replica.state import ReplicaState


class ReplicaKeeper:
    """Implements gate_messages.GateKeeper for one run."""

    def __init__(
        self,
        group: GroupDescription,
        state: ReplicaState,
        batches: Batches,
        inputs: BatchInputs,
        tasks: Tasks,
        keyed: KeyedState | None,
        registries: RunRegistries,
    ) -> None:
        """`keyed`: None for a group whose state Spark keeps."""
        self._group = group
        self._state = state
        self._batches = batches
        self._inputs = inputs
        self._tasks = tasks
        self._keyed = keyed
        self._registries = registries

    def describe(self) -> GroupDescription:
        return self._group

    # --- batches

    def first_token(self) -> int:
        self._state.connected.set()
        return 0

    def next_token(self, done: int) -> int:
        self._state.connected.set()
        return self._batches.next_token(done)

    def tasks_of(self, token: int) -> list[TaskPart]:
        return self._tasks.planned(token)

    def slices_of(self, token: int, task: int) -> list[Slice] | None:
        return self._batches.slices_of(token, task)

    def slice_read(self, read: SliceRead) -> None:
        ended = [self._inputs.position(read)] if read.ended else []
        if self._state.permit is not None:  # its copies read the same rows, and need not tell of them again
            self._inputs.noted(read)
        self._inputs.offsets.measured(read.rows, read.size)
        self._state.task_has_read((read.input, read.partition), read.rows, self._inputs.rejected(read), ended)

    def part_processed(self, task: int, payload: Payload) -> None:
        self._batches.part_processed(task, payload)

    # --- schema registries

    def registry(self, name: str) -> Registry:
        return self._registries(name)

    def record_waits(self, waits: RecordWaits) -> None:
        place = Place(waits.topic, waits.partition, waits.offset)
        self._registries.record_waits(place, waits.registry, waits.number)

    # --- a processor's states

    def states_of(self, keys: Sequence[str | None], task: int) -> list[bytes | None]:
        self._take(keys, task)
        with _as_damage():
            return self._states.get(keys)

    def states_between(self, first: str, end: str) -> list[tuple[str, bytes]]:
        with _as_damage():
            return self._states.between(first, end)

    def keys_between(self, first: str, end: str, most: int) -> list[str]:
        with _as_damage():
            return self._states.keys(first, end, most)

    def keep_states(self, kept: KeepStates) -> None:
        self._take(kept.keys, kept.task)  # a task may keep a state that it has not asked for
        self._states.keep(kept.keys, kept.states, kept.sizes)
        self._tasks.leave(kept.left)

    def _take(self, keys: Sequence[str | None], task: int) -> None:
        try:
            self._tasks.take(keys, task)
        except KeysShared as error:
            self._state.fail(error)
            raise

    @property
    def _states(self) -> KeyedState:
        assert self._keyed is not None, "the group has no keyed state"
        return self._keyed


@contextmanager
def _as_damage() -> Iterator[None]:
    """A state that cannot be read is damage to the local state."""
    try:
        yield
    except ValueError as error:
        raise LocalStateDamaged(str(error)) from error
