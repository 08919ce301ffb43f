"""The questions of a simulated replica to the broker: one at a time, and an answer may never come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline_runtime.handover.protocol import Event, Lost, Unsure
from pipeline_runtime.journal.records import Record
from tests.simulation.broker import Fenced
from tests.simulation.memory import Memory
from tests.simulation.network import Network

ANSWER_STEPS_MAX = 25

Note = Callable[..., None]
"""Takes a name, a format, and the values for its places. It is formatted only for a trace."""


class Asking:
    """The part of a replica that asks."""

    def __init__(self, name: str, network: Network, note: Note) -> None:
        self.name = name
        self.memory = Memory()
        self._network = network
        self._note = note
        self._questions = 0

    def _tell(self, event: Event) -> None:
        """Tells the protocol what has happened."""
        raise NotImplementedError

    def _commit(self, records: tuple[Record, ...], then: Callable[[Any], Any]) -> None:
        """Commits in two steps, as Kafka does. An actor that pauses between them leaves a transaction
        open."""
        handle, broker = self.memory.handle, self._network.broker
        assert handle is not None
        self._note(self.name, "sends {}", records)
        self._ask(
            lambda: broker.write(handle, records), lambda _: self._ask(lambda: broker.commit(handle), then)
        )

    def _ask(self, call: Callable[[], Any], then: Callable[[Any], Any]) -> None:
        memory = self.memory
        self._questions += 1
        memory.asked = self._questions
        memory.asked_at, memory.unsent, memory.then = self._network.now, call, then

    def _send(self, call: Callable[[], Any]) -> None:
        memory, number = self.memory, self.memory.asked
        memory.asked_at, memory.unsent = self._network.now, None
        self._network.ask_broker(self.name, call, lambda answer: memory.mail.append((number, answer)))

    def _wait_for_answer(self) -> None:
        memory = self.memory
        for number, answer in memory.mail:
            if number == memory.asked:
                memory.mail.clear()
                return self._answered(answer)
        memory.mail.clear()
        if self._network.now - memory.asked_at > ANSWER_STEPS_MAX:
            memory.asked, memory.read_to = 0, None
            self._tell(Unsure("no answer"))
        return None

    def _answered(self, answer: Any) -> None:
        memory = self.memory
        memory.asked = 0
        if isinstance(answer, Fenced):
            return self._tell(Lost("fenced"))
        assert memory.then is not None
        return memory.then(answer)

    def _read_to(self, end: int, then: Callable[[Any], Any]) -> None:
        self.memory.read_to, self.memory.then = end, then
