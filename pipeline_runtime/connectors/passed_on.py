"""What a broker has passed on of the messages that a client sent, by what comes back to the client itself."""

from __future__ import annotations

import threading
from collections import deque

_OWN_MAX = 10_000
"""How many messages this client knows as its own, behind those that it waits for."""


class PassedOn:
    """A broker passes on the messages of one topic in their order. So if one comes back, those that were sent
    before it and have not come back never will: the broker has dropped them.

    One thread sends and waits, and another one takes what comes back. It outlives connections: a message may
    come back late, also to the next connection.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: dict[str, deque[tuple[bytes, int | None]]] = {}  # by topic: the payload, and its number
        self._dropped: list[int] = []
        self._own: deque[int] = deque(maxlen=_OWN_MAX)  # hashes of what was sent
        self._heard: set[str] = set()  # topics
        self._all = threading.Event()
        self._all.set()
        self.has_other = False
        """Whether a message has come that this client did not send."""
        self.waiting_bytes = 0
        """The bytes of all payloads of which it is not known what became of them."""

    def begin(self) -> None:
        """Tells that a connection begins. What was sent on the one before is waited for no more."""
        with self._lock:
            self._sent.clear()
            self._dropped.clear()
            self._heard.clear()
            self._all.set()
            self.has_other, self.waiting_bytes = False, 0

    def sends(self, topic: str, payload: bytes, number: int | None) -> None:
        """Tells that a message is about to be sent. `number`: by which `dropped` names it, if it does."""
        with self._lock:
            self._sent.setdefault(topic, deque()).append((payload, number))
            self._own.append(hash(payload))
            self.waiting_bytes += len(payload)
            self._all.clear()

    def take(self, topic: str, payload: bytes) -> None:
        """Takes a message that has come back."""
        with self._lock:
            waiting = self._sent.get(topic, deque())
            if not any(payload == sent for sent, _ in waiting):
                # Between bridged brokers a message may come twice, or late. Before the first one has come
                # back, messages of an earlier owner may be under way.
                self.has_other |= bool(self._heard) and hash(payload) not in self._own
                return
            self._heard.add(topic)
            while waiting:
                sent, number = waiting.popleft()
                self.waiting_bytes -= len(sent)
                if sent == payload:
                    break
                if number is not None:
                    self._dropped.append(number)
            if not waiting:
                self._sent.pop(topic)
            if not self._sent:
                self._all.set()

    def wait(self, timeout_s: float) -> bool:
        """Returns whether it is known of all messages what became of them."""
        return self._all.wait(timeout_s)

    def missing(self) -> list[str]:
        """Returns the topics of which something has not come back."""
        with self._lock:
            return list(self._sent)

    def unheard(self) -> list[str]:
        """Returns the topics among these from which nothing has come back at all."""
        with self._lock:
            return [topic for topic in self._sent if topic not in self._heard]

    def dropped(self) -> list[int]:
        """Returns the numbers of the messages that have not come back since the last call, and never will,
        sorted."""
        with self._lock:
            found, self._dropped = sorted(self._dropped), []
            return found
