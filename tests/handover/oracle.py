"""The results that a keyed sequence must have, computed in plain Python from the inputs as Kafka holds
them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tests.benchmarks.events import Verdict
from tests.handover.tail import Tail

Identity = tuple[str, int]
"""A key, and the number of the row within that key."""


class Oracle:
    """Takes inputs and outputs in the order of their partition. It may be asked at any time."""

    def __init__(self) -> None:
        self._wanted: dict[Identity, tuple[int, int]] = {}  # -> n, checksum
        self._chains: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))  # key -> count, checksum
        self._seen: set[Identity] = set()
        self._last: dict[str, int] = defaultdict(int)  # key -> the highest count that has come out
        self._duplicated = self._reordered = self._wrong = 0
        self.inputs = 0
        self.outputs = 0

    def take_inputs(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            count, checksum = self._chains[row["k"]]
            count, checksum = count + 1, (checksum * 31 + row["n"] + 1) % 2**31
            self._chains[row["k"]] = (count, checksum)
            self._wanted[row["k"], count] = (row["n"], checksum)
            self.inputs += 1

    def take_outputs(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            key, count = row["k"], row["count"]
            self.outputs += 1
            self._duplicated += (key, count) in self._seen
            self._wrong += self._wanted.get((key, count)) != (row["n"], row["checksum"])
            self._reordered += count < self._last[key]
            self._seen.add((key, count))
            self._last[key] = max(self._last[key], count)

    def verdict(self, *, final: bool) -> Verdict:
        """With `final`, every input must have its output by now; otherwise only those before a later
        output."""
        lost = sum(1 for key, count in self._wanted.keys() - self._seen if final or count < self._last[key])
        return Verdict(lost, self._duplicated, self._reordered, self._wrong)


class Judge:
    """Reads both topics (of one partition each) as a read_committed consumer, and asks the oracle."""

    def __init__(self, bootstrap: str, inputs: str, outputs: str) -> None:
        self._inputs, self._outputs = Tail(bootstrap, inputs), Tail(bootstrap, outputs)
        self.oracle = Oracle()

    def verdict(self, *, final: bool = False) -> Verdict:
        # The outputs so far first. Everything they come from is then among the inputs.
        outputs = self._outputs.values()
        self.oracle.take_inputs(self._inputs.values())
        self.oracle.take_outputs(outputs)
        return self.oracle.verdict(final=final)

    def close(self) -> None:
        self._inputs.close()
        self._outputs.close()
