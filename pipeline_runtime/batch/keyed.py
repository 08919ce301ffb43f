"""Runs a KeyedProcessor: rows in offset order, one state per key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from pipeline_runtime.batch.gate_messages import KeepStates, StatesOf
from pipeline_runtime.batch.key_rows import KeyRows, KeyTimers, by_key
from pipeline_runtime.batch.rows import Asked, Inputs, Letter, Ports, Processed, current_state
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor

# The states of so many keys are in memory together: a state may be large.
_KEYS_AT_ONCE = 256


class KeyedWork:
    """Implements rows.ProcessorWork."""

    def __init__(self, processor: KeyedProcessor, inputs: Inputs, outputs: StreamSchema) -> None:
        self._version = processor.state_version
        self._key_field = processor.key_field()
        self._inputs = inputs
        self._processor = processor
        self._outputs = outputs

    def process(
        self, ports: Ports, gate: Asked, task: int = 0, *, at_end: bool = False, batch_time_ms: int = 0
    ) -> Processed:
        """See rows.ProcessorWork. A keyed processor keeps no row back, so it does nothing more `at_end`."""
        letters: list[Letter] = []
        given, keys = by_key(ports, self._inputs, self._key_field, letters)
        rows, names = KeyRows(self._processor, self._inputs, self._outputs, given), iter(keys)
        while some := list(islice(names, _KEYS_AT_ONCE)):
            changed: list[tuple[str, str]] = []
            for name, stored in zip(some, gate.ask(StatesOf(some, task)), strict=True):
                state = KeyState(stored, self._version)
                rows.process(name, keys[name], state)
                if state.text != stored:
                    changed.append((name, state.text))
            gate.ask(KeepStates(changed))
        return Processed(rows.output.table(), [*letters, *rows.output.letters])


class KeyState:
    """What is kept for one key. Implements key_rows.Stored."""

    def __init__(self, stored: str | None, version: int = 1) -> None:
        """`version`: of the state, as it is kept from now on; 1 is not written down."""
        self._text = stored or json.dumps({"state": {}, "timers": [], "version": version})
        self._version = version

    def load(self, processor: KeyedProcessor | None = None) -> tuple[dict[str, Any], KeyTimers]:
        """`processor`: makes a state of its version of an earlier one. ValueError: it is of a later one."""
        data = json.loads(self._text)
        state = data["state"]
        if processor is not None:
            state = current_state(state, data.get("version", 1), processor)
        return state, KeyTimers(data["timers"])

    def save(self, state: Mapping[str, Any], timers: KeyTimers) -> None:
        data: dict[str, Any] = {"state": state, "timers": timers.times}
        if self._version > 1:
            data["version"] = self._version
        self._text = json.dumps(data, separators=(",", ":"))

    @property
    def text(self) -> str:
        return self._text
