"""Runs a KeyedProcessor: rows in offset order, one state per key."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from pipeline_runtime.batch.held_states import HeldStates, TaskStates, size_of
from pipeline_runtime.batch.kept import Kept, decoded, encoded
from pipeline_runtime.batch.key_output import OutputForms
from pipeline_runtime.batch.key_rows import KeyRows, KeyTimers, by_key
from pipeline_runtime.batch.rows import Asked, Inputs, Letter, Ports, Processed, current_state
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor

# The states of so many keys are in memory together: a state may be large.
_KEYS_AT_ONCE = 1_000


class KeyedWork:
    """Implements rows.ProcessorWork."""

    def __init__(
        self,
        processor: KeyedProcessor,
        inputs: Inputs,
        outputs: StreamSchema,
        held: HeldStates | None = None,
    ) -> None:
        """`held`: None for a task that does not stay."""
        self._held = held
        self._version = processor.state_version
        self._key_field = processor.key_field()
        self._inputs = inputs
        self._processor = processor
        self._forms = OutputForms(outputs, inputs)

    def process(
        self, ports: Ports, gate: Asked, task: int = 0, *, at_end: bool = False, batch_time_ms: int = 0
    ) -> Processed:
        """See rows.ProcessorWork. A keyed processor keeps no row back, so it does nothing more `at_end`."""
        letters: list[Letter] = []
        given, keys = by_key(ports, self._inputs, self._key_field, letters)
        rows, names = KeyRows(self._processor, self._inputs, self._forms, given), iter(keys)
        states = TaskStates(gate, task, self._held)
        while some := list(islice(names, _KEYS_AT_ONCE)):
            changed: list[tuple[str, bytes, int]] = []
            for name, stored in zip(some, states.get(some), strict=True):
                state = KeyState(stored, self._version)
                rows.process(name, keys[name], state)
                if state.data != stored:
                    changed.append((name, state.data, size_of(stored)))
            if changed:
                states.keep(*zip(*changed, strict=True))
        return Processed(rows.output.table(), [*letters, *rows.output.letters])


class KeyState:
    """What is kept for one key. Implements key_rows.Stored."""

    def __init__(self, stored: bytes | None, version: int = 1) -> None:
        """`version`: of the state, as it is kept from now on."""
        self._data = stored or encoded(Kept({}, version))
        self._version = version

    def load(self, processor: KeyedProcessor | None = None) -> tuple[dict[str, Any], KeyTimers]:
        """`processor`: makes a state of its version of an earlier one. ValueError: it is of a later one."""
        kept = decoded(self._data)
        state = kept.state
        if processor is not None:
            state = current_state(state, kept.version, processor)
        return state, KeyTimers(kept.timers)

    def save(self, state: Mapping[str, Any], timers: KeyTimers) -> None:
        self._data = encoded(Kept(state, self._version, timers.times))

    @property
    def data(self) -> bytes:
        return self._data
