"""A host application of Sparkplug B for the tests: it reads an edge node beside a real broker, and notes what
the specification forbids."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pipeline_runtime.connectors.sparkplug import SEQS, parsed
from tests.brokers import Broker


class Host:
    """Reads the whole numbers of one metric of an edge node.

    `values`: how often each came as data. `faults`: what no edge node may do, in words. `lives`: the number
    (`bdSeq`) of each connection that was born, in order. `deaths`: how many of these have died.
    """

    def __init__(self, broker: Broker, group: str, node: str, metric: str) -> None:
        self.values: Counter[int] = Counter()
        self.faults: list[str] = []
        self.lives: list[int] = []
        self.deaths = 0
        self.is_online = False
        self._node, self._metric = node, metric
        self._seq = 0
        self._names: dict[int, str] = {}  # by alias, of the newest birth
        self._client = broker.client(self._take, f"spBv1.0/{group}/#")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _take(self, topic: str, raw: bytes) -> None:
        _, _, kind, node, *_ = topic.split("/")
        take = {"NBIRTH": self._birth, "NDATA": self._data, "NDEATH": self._death}.get(kind)
        if node == self._node and take is not None:
            take(parsed(raw))

    def _birth(self, payload: Any) -> None:
        number = _number_of(payload)
        is_again = self.is_online and number == self.lives[-1]  # a host has asked for it
        if self.is_online and not is_again:
            self.faults.append(f"birth {number} came before the death {self.lives[-1]}")
        if not self.is_online and number in self.lives:
            self.faults.append(f"birth {number} came after its death")
        if payload.seq != 0:
            self.faults.append(f"birth {number} has the sequence number {payload.seq}")
        if not is_again:
            self.lives.append(number)
        self.is_online, self._seq = True, 0
        self._names = {each.alias: each.name for each in payload.metrics if each.alias}

    def _data(self, payload: Any) -> None:
        if not self.is_online:
            self.faults.append(f"data {payload.seq} came without a birth")
            return
        expected = (self._seq + 1) % SEQS
        if payload.seq != expected:
            self.faults.append(f"data {payload.seq} came instead of {expected}")
        self._seq = payload.seq
        for each in payload.metrics:
            name = self._names.get(each.alias)
            if name is None:
                self.faults.append(f"data has the alias {each.alias}, which the birth does not name")
            elif name == self._metric:
                self.values[each.long_value] += 1

    def _death(self, payload: Any) -> None:
        """A death of another connection says nothing about this one."""
        if self.is_online and _number_of(payload) == self.lives[-1]:
            self.is_online = False
            self.deaths += 1


def _number_of(payload: Any) -> int:
    """Returns by which number a birth and a death belong together."""
    [found] = [each.long_value for each in payload.metrics if each.name == "bdSeq"]
    return int(found)
