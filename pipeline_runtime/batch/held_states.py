"""The states of a processor's keys, as a task reads and changes them in a batch.

The replica has them all, and is told each change with the batch that makes it. A task that stays
(batch.group) holds those that it has read or written last, and asks for the others only. It is given no
further batch after one that came to nothing, and if it has begun that already, it comes to nothing as well.
So what it holds is what the batch before has left.
Each partition is always the same task's, and the gate lets no second task have a key that one of them holds
(batch.tasks).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline_runtime.batch.gate_messages import KeepStates, KeysBetween, StatesBetween, StatesOf
from pipeline_runtime.batch.rows import Asked

HELD_BYTES_MAX = 32 << 20
_ENTRY_BYTES = 200  # what Python needs for a key and its state, besides their own bytes
_ASKED_AT_ONCE = 10_000
_ABSENT = -1

Key = str | None
"""None stands for the element as a whole."""


class HeldStates:
    """The states that a task holds, by key. None says that there is none for a key.

    There are two generations. What is used moves to the young one. When that is full, the old one goes, and
    the young one becomes the old one.
    """

    def __init__(self, bytes_max: int = HELD_BYTES_MAX) -> None:
        self._young_bytes_max = bytes_max // 2
        self._young: dict[Key, bytes | None] = {}
        self._old: dict[Key, bytes | None] = {}
        self._young_bytes = 0
        self._left: list[Key] = []

    def find(self, keys: Iterable[Key], found: dict[Key, bytes | None]) -> list[Key]:
        """Puts what is held for the keys into `found`. Returns the other keys."""
        missing = []
        for key in keys:
            if key in self._young:
                found[key] = self._young[key]
            elif key in self._old:
                found[key] = self._old[key]
                self._hold(key, found[key])
            else:
                missing.append(key)
        return missing

    def hold(self, keys: Iterable[Key], states: Iterable[bytes | None]) -> None:
        for key, data in zip(keys, states, strict=True):
            self._hold(key, data)

    def left(self) -> list[Key]:
        """Returns the keys that are held no more since it was last called."""
        left, self._left = self._left, []
        return [key for key in left if key not in self._young and key not in self._old]

    def _hold(self, key: Key, data: bytes | None) -> None:
        if key in self._young:
            self._young_bytes -= len(self._young[key] or b"")
        else:
            self._young_bytes += _ENTRY_BYTES
        self._young_bytes += len(data or b"")
        self._young[key] = data
        if self._young_bytes > self._young_bytes_max:
            self._left += self._old.keys() - self._young.keys()
            self._old, self._young, self._young_bytes = self._young, {}, 0


class TaskStates:
    """The states of keys in one batch."""

    def __init__(self, gate: Asked, task: int, held: HeldStates | None) -> None:
        """`held`: None for a task that does not stay."""
        self._gate = gate
        self._task = task
        self._held = held

    def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """Returns what the batch before has left of the keys, or what this one has kept."""
        if self._held is None:
            return self._asked(keys)
        found: dict[Key, bytes | None] = {}
        missing = self._held.find(keys, found)
        if missing:
            asked = self._asked(missing)
            self._held.hold(missing, asked)
            found.update(zip(missing, asked, strict=True))
            self.keep((), (), ())  # a key that is read, and never changed, is left too
        return [found[key] for key in keys]

    def _asked(self, keys: Sequence[Key]) -> list[bytes | None]:
        found: list[bytes | None] = []
        for place in range(0, len(keys), _ASKED_AT_ONCE):
            found += self._gate.ask(StatesOf(keys[place : place + _ASKED_AT_ONCE], self._task))
        return found

    def between(self, first: str, end: str) -> list[tuple[str, bytes]]:
        """Returns the keys from `first` to before `end`, as the batch before has left them."""
        return self._gate.ask(StatesBetween(first, end))

    def keys(self, first: str, end: str, most: int) -> list[str]:
        return self._gate.ask(KeysBetween(first, end, most))

    def keep(self, keys: Sequence[Key], states: Sequence[bytes | None], sizes: Sequence[int | None]) -> None:
        """Keeps the states with the batch. Each key is kept once in a batch. `sizes`: as in KeepStates."""
        if self._held is None:
            if keys:
                # Spark ends the batch when this task ends, and the gate has to know it by then.
                self._gate.ask(KeepStates(keys, states, sizes, self._task))
            return
        self._held.hold(keys, states)
        left = self._held.left()
        if keys or left:
            self._gate.tell(KeepStates(keys, states, sizes, self._task, left))


def size_of(data: bytes | None) -> int:
    """Returns the size of a state that is replaced, as KeepStates has it."""
    return _ABSENT if data is None else len(data)
