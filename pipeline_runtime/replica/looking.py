"""Shows what a processor keeps while its batches go on: page by page, in the order of the keys."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from time import sleep
from typing import Any

from pipeline_runtime.batch.inputs import input_schemas, operator_of
from pipeline_runtime.batch.kept import Kept, decoded
from pipeline_runtime.batch.rows import current_state
from pipeline_runtime.checkpoint.keyed_state import KeyedState, KeyedStateClosed
from pipeline_runtime.model.kept import KeptAnswer, KeptEntry, KeptQuestion
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import Processor

log = logging.getLogger(__name__)

KEY_MAX = 1024
"""How many characters of a key are told. The next page goes on behind them, so of longer keys that begin
alike only the first is shown."""
STATE_MAX = 8 * 1024
"""How many bytes of a state are told."""
READ_MAX = 1 << 20
"""How many bytes of a state are read, to tell its beginning: other threads wait meanwhile."""
LOOKED_MAX = 5_000
"""How many keys one question looks through for the text that it searches."""
_AT_ONCE = 25
_REST_S = 0.001


class Looking:
    def __init__(
        self, element: str, processor: Processor, inputs: Mapping[str, StreamSchema], state: KeyedState
    ) -> None:
        self._element = element
        self._processor = processor
        self._inputs = inputs
        self._state = state
        # Then RocksDB cannot go to a searched key directly: it sorts the keys as they are, not as people read
        # them.
        self._made_readable = type(processor).readable_key is not Processor.readable_key

    @classmethod
    def at(cls, spec: GroupSpec, element: str | None, state: KeyedState) -> Looking | None:
        """`element` is the group's processor. Returns None if the group has none: its state then says only
        where it stands."""
        processor = None if element is None else operator_of(spec, element)
        if element is None or not isinstance(processor, Processor):
            return None
        return cls(element, processor, input_schemas(spec, element), state)

    def answer(self, question: KeptQuestion) -> KeptAnswer:
        if question.element != self._element:
            return KeptAnswer(refused="elsewhere")
        try:
            return self._page(question)
        except KeyedStateClosed:
            return KeptAnswer(refused="away")
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s: its state cannot be looked at: %s", self._element, type(error).__name__)
            return KeptAnswer(refused="failed")

    def _page(self, question: KeptQuestion) -> KeptAnswer:
        """One page of keys. If people read the keys as they are, those that begin with the searched text.
        Else those whose readable form contains it, among the next LOOKED_MAX keys."""
        filtered = self._made_readable and bool(question.search)
        prefix, searched = ("", question.search.casefold()) if filtered else (question.search, "")
        first = "" if question.after is None else question.after + "\0"  # the next possible key
        found: list[tuple[str, bytes]] = []
        looked, last = 0, None
        while True:
            some, last = self._state.look(
                first,
                prefix,
                lambda key: not searched or searched in self._readable_key(key).casefold(),
                most=question.limit - len(found),
                keys_max=_AT_ONCE,
            )
            found += some
            looked += _AT_ONCE
            if last is None or len(found) == question.limit or looked >= LOOKED_MAX:
                break
            first = last + "\0"
            sleep(_REST_S)  # so that other threads of this process have their turn
        return KeptAnswer(
            keys=self._state.count,
            entries=tuple(self._entry(key, data) for key, data in found),
            next=None if last is None else _passing(last),
            looked=LOOKED_MAX if filtered and last is not None and looked >= LOOKED_MAX else None,
        )

    def _entry(self, key: str, data: bytes) -> KeptEntry:
        name = self._readable_key(key)
        entry = KeptEntry(key=name[:KEY_MAX], key_cut=len(name) > KEY_MAX)
        if len(data) > READ_MAX:
            return entry.model_copy(update={"state": f"{len(data):,} bytes: ", "state_cut": True})
        kept = decoded(data)
        state = self._readable_state(kept)
        if len(state) > STATE_MAX:
            return entry.model_copy(update={"state": state[:STATE_MAX], "state_cut": True})
        return entry.model_copy(update={"state": state, "timers_ms": tuple(kept.timers)})

    def _readable_state(self, kept: Kept) -> str:
        try:
            state = current_state(kept.state, kept.version, self._processor)
            return _json(self._processor.readable_state(state, self._inputs))
        except Exception:  # an operator's own code
            return _told(kept.state)

    def _readable_key(self, key: str) -> str:
        try:
            return self._processor.readable_key(key)
        except Exception:  # an operator's own code
            return key


def _json(state: Any) -> str:
    return json.dumps(state, separators=(",", ":"))


def _told(state: Any) -> str:
    try:
        return _json(state)
    except (TypeError, ValueError):  # JSON has not all that a state may hold
        return _json(repr(state))


def _passing(key: str) -> str:
    """The key behind which the next page begins."""
    return key if len(key) <= KEY_MAX else key[:KEY_MAX] + "\U0010ffff"
