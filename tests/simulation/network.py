"""Time in steps, and messages that are delayed, lost, duplicated and so reordered, all by one seed."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.broker import Broker, Fenced

Answer = Any


@dataclass(slots=True)
class Trouble:
    """How bad the network is, as chances per message."""

    delay_max: int = 1
    slow: float = 0.0  # a message takes up to ten times as long
    lost: float = 0.0
    twice: float = 0.0


@dataclass(slots=True)
class Network:
    random: Random
    broker: Broker
    trouble: Trouble = field(default_factory=Trouble)
    now: int = 0
    unanswered: float = 0.0  # the broker does what it is asked, and its answer is lost
    cut_from_broker: dict[str, int] = field(default_factory=dict)  # name -> until when
    cut_from_control: dict[str, int] = field(default_factory=dict)
    _messages: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    _count: int = 0

    def ask_broker(self, name: str, call: Callable[[], Answer], answered: Callable[[Answer], None]) -> None:
        """`answered` gets what `call` returned, or Fenced, later. Or it is never called; then the call may
        have happened."""

        def arrive() -> None:
            if self.is_cut(name):
                return
            try:
                answer = call()
            except Fenced as error:
                answer = error
            if self.random.random() >= self.unanswered:
                self._send(lambda: None if self.is_cut(name) else answered(answer))

        self._send(arrive)

    def tell(self, node: str, deliver: Callable[[], None]) -> None:
        """Sends a message between control and a node, in either direction."""

        def arrive() -> None:
            if self.cut_from_control.get(node, 0) <= self.now:
                deliver()

        self._send(arrive)
        if self.random.random() < self.trouble.twice:
            self._send(arrive)

    def is_cut(self, name: str) -> bool:
        return self.cut_from_broker.get(name, 0) > self.now

    def deliver(self) -> None:
        while self._messages and self._messages[0][0] <= self.now:
            heapq.heappop(self._messages)[2]()

    def _send(self, arrive: Callable[[], None]) -> None:
        trouble, chance = self.trouble, self.random.random()
        if chance < trouble.lost:
            return
        slow = trouble.lost <= chance < trouble.lost + trouble.slow
        delay = self.random.randint(1, trouble.delay_max * (10 if slow else 1))
        self._count += 1
        heapq.heappush(self._messages, (self.now + delay, self._count, arrive))
