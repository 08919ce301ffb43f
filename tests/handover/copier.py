"""The operator of the handover tests. It copies a keyed sequence, and each row depends on all rows before it.

Input {"k", "n", "pad"}; output {"k", "n", "count", "checksum"}. A row that is lost, processed twice or out of
order within its key changes every later row of that key. `pad` is the number of further bytes in the key's
state. With many idle keys the state is as large as a test needs, and a batch costs the same.
"""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor, OutputRow, Params, Row, Timers

TYPE = "keyed-sequence"


class KeyedSequenceParams(Params):
    pass


class KeyedSequence(KeyedProcessor):
    """Counts each key's rows and chains their numbers into a checksum."""

    type = TYPE
    title = "Keyed sequence"
    summary = "Copies rows; each shows what came before it"
    category = "state"
    icon = "list-ordered"
    Params = KeyedSequenceParams

    def key_field(self) -> str | None:
        return "k"

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        numbers = [Field(name=name, type=FieldType.INTEGER) for name in ("n", "count", "checksum")]
        return StreamSchema(fields=(Field(name="k", type=FieldType.STRING), *numbers), key="k")

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        state["count"] = state.get("count", 0) + 1
        state["checksum"] = (state.get("checksum", 0) * 31 + row["n"] + 1) % 2**31
        if row["pad"] > 0:
            state["pad"] = _noise(key, row["n"], row["pad"])
        yield {"k": key, "n": row["n"], "count": state["count"], "checksum": state["checksum"]}


def _noise(key: str, n: int, size: int) -> str:
    """Returns text that hardly compresses and is the same wherever it is made."""
    return b64encode(random.Random(f"{key}/{n}").randbytes(size * 3 // 4)).decode()
