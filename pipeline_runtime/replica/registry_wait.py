"""Lets an owner wait for a schema registry.

A batch of the owner fails if the registry does not answer, lacks a schema, or refuses one. The owner then
keeps the group. It processes batches until one partition has reached a waiting record, and begins no batch
after that. It asks the registry again and again, and goes on when the registry has answered. Meanwhile it may
release the group to another node, which may reach the registry. If the registry answers that it has no such
schema, a person may choose to leave records out. That choice acts only while the owner waits for them.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic

from pipeline_runtime.formats.schema_registry import NoSuchSchema, SchemaRegistryError
from pipeline_runtime.journal.records import Ends
from pipeline_runtime.model.desired import ReplicaError, WayOn
from pipeline_runtime.model.ids import position_key
from pipeline_runtime.replica.roles import now_ms
from pipeline_runtime.replica.run_registries import Needed
from pipeline_runtime.replica.stalls import BY_WAITING, acting, way_behind
from pipeline_runtime.replica.state import ReplicaState

log = logging.getLogger(__name__)

ASK_S_MAX = 60.0
"""The longest pause between two questions to the registry. The pauses are 1, 2, 4 .. s."""
CALM_S = 120.0
"""If the owner has not waited for this long, the pauses begin with 1 s again."""

EndOf = Callable[[str, int], int | None]
"""Returns the offset at which a partition of a topic ends, or None if that is not known."""


class RegistryWait:
    """Holds what the owner waits for. Only the replica's thread calls its public methods. Any thread may read
    `error`, which says for what the owner waits. ReplicaState.changed guards what the asking thread shares
    with the replica's thread."""

    def __init__(self, state: ReplicaState, end_of: EndOf, changed: Callable[[], None]) -> None:
        """`changed` is called when `error` has changed."""
        self._state = state
        self._end_of = end_of
        self._changed = changed
        self._needed: tuple[Needed, ...] = ()
        self._thread: threading.Thread | None = None
        self._tries = 0
        self._due_s = self._ended_s = 0.0
        self._message = ""  # the error of the failed batch, without the place of a record
        self.error: ReplicaError | None = None
        self.chosen: tuple[str, ...] = ()
        """WayOn.id of what a person has chosen, for the next CLAIM of this owner."""

    def begin(self, error: ReplicaError, needed: Sequence[Needed]) -> None:
        """Begins to wait because a batch has failed with `error`, for lack of `needed`. What earlier batches
        lacked, and what still has not come, is waited for as well."""
        with self._state.changed:
            if monotonic() - self._ended_s > CALM_S and not self._needed:
                self._tries = 0
            self._needed = _each_once((*needed, *self._needed))
            self._due_s = monotonic() + _pause_s(self._tries)
            self._message = error.message
            self._say(error.at_ms)
            self._state.wait_for_registry(places_of(self._needed))
        self._changed()

    def look(self, ends: Ends) -> bool:
        """Asks the registry again when that is due. Returns whether the owner has to claim again, because a
        person has chosen how the group goes on and the group has reached the waiting records. `ends`: the
        offset of each partition at which the next batch begins, or at which the running batch ends."""
        with self._state.changed:
            waits, accepted = self._state.waits, self._state.directive.accepts
            owns, runs = self._state.permit is not None, self._state.granted is not None
            if owns:  # the CLAIM has acted
                self.chosen = ()
            needed, error = self._needed, self.error
        if not needed:
            return False
        if waits is None:  # the group was released, or the registry has answered
            self._end()
            return False
        if not owns:  # the replica claims again now
            return False
        chosen = acting([way.id for way in error.ways], accepted, ends) if error is not None else ()
        if chosen and not runs:
            self._end()
            self.chosen = chosen
            self._state.wait_for_registry(None)
            return True
        self._ask_if_due(needed)
        return False

    def _ask_if_due(self, needed: tuple[Needed, ...]) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        with self._state.changed:
            if monotonic() < self._due_s:
                return
            self._due_s = monotonic() + _pause_s(self._tries + 1)  # also if the thread ends in a fault
        self._thread = threading.Thread(target=self._ask, args=(needed,), name="schema registry", daemon=True)
        self._thread.start()

    def _ask(self, needed: tuple[Needed, ...]) -> None:
        """Asks for what is missing, until a registry does not answer. Runs in a thread of its own, since an
        answer may take some seconds."""
        rest: list[Needed] = []
        for place, each in enumerate(needed):
            try:
                each.ask()
            except NoSuchSchema as error:
                rest.append(replace(each, why=str(error), unknown=True))
            except Exception as error:
                why = _why_not_asked(error)
                if why != each.why and not isinstance(error, SchemaRegistryError):
                    # Without the error's text, which may have a part of the login.
                    log.error("%s\n%s", why, "".join(traceback.format_tb(error.__traceback__)))
                rest += [replace(each, why=why, unknown=False), *needed[place + 1 :]]
                break
        with self._state.changed:
            # Another batch may have failed meanwhile, or the group was released.
            if self._needed is needed and self._state.waits is not None:
                self._keep(needed, tuple(rest))
        self._changed()

    def _keep(self, needed: tuple[Needed, ...], rest: tuple[Needed, ...]) -> None:
        """Goes on to wait for the rest, with the registry's present words. The caller holds `changed`."""
        if not rest:
            self._state.wait_for_registry(None)
            return
        self._tries += 1
        self._due_s = monotonic() + _pause_s(self._tries)
        if rest == needed:
            return
        for one in needed:
            now = next((each for each in rest if each.ask is one.ask), one)
            self._message = self._message.replace(one.why, now.why)
        self._needed = rest
        self._say(now_ms())
        self._state.wait_for_registry(places_of(rest))

    def _end(self) -> None:
        with self._state.changed:
            self._needed, self.error, self._ended_s = (), None, monotonic()
        self._changed()

    def _say(self, at_ms: int) -> None:
        first = self.error.at_ms if self.error is not None else at_ms
        why, place = self._needed[0].why, self._needed[0].place
        message = self._message if why in self._message else why
        if place is not None:
            where = f"{place.topic}, partition {place.partition}, from offset {place.offset} on"
            message = f"The records of the topic {where} wait: {why}"
        ways = ways_on(self._needed, self._end_of)
        self.error = ReplicaError.of("schema-registry", message, first, ways=ways)


def is_reached(waits: Mapping[str, int], ends: Ends) -> bool:
    """Returns whether a partition has reached its waiting record. `waits`: the result of `places_of`. `ends`:
    the offset that each partition has reached."""
    return not waits or any(ends.get(key, 0) >= at for key, at in waits.items())


def places_of(needed: Sequence[Needed]) -> dict[str, int]:
    """Returns partition -> the offset before which it can be processed, with the partition's key in a
    position. It is empty if no batch can be processed at all. Pure."""
    places = [each.place for each in needed]
    if None in places:
        return {}
    return {position_key(at.topic, at.partition): at.offset for at in places if at is not None}


def ways_on(needed: Sequence[Needed], end_of: EndOf) -> tuple[WayOn, ...]:
    """Returns the ways to go on that a person may choose. If the registry has no such schema, they leave out
    the first waiting records, or all records up to the present ends of their partitions. It is empty if the
    registry may still answer."""
    found = [each.way for each in needed if each.way is not None]
    unknown = [each.place for each in needed if each.unknown and each.place is not None]
    start = {position_key(at.topic, at.partition): at.offset for at in unknown}
    ends = {position_key(at.topic, at.partition): end_of(at.topic, at.partition) for at in unknown}
    one = {key: at + 1 for key, at in start.items()}
    for end in (one, {key: max(at, ends[key] or 0) for key, at in one.items()}):
        way = way_behind(start, end, BY_WAITING)
        if way is not None and way.id not in [each.id for each in found]:
            found.append(way)
    return tuple(found)


def _each_once(needed: Sequence[Needed]) -> tuple[Needed, ...]:
    """Returns the first one for each partition, and the first one for each reason without a place."""
    found: dict[object, Needed] = {}
    for each in needed:
        key: object = each.why if each.place is None else (each.place.topic, each.place.partition)
        found.setdefault(key, each)
    return tuple(found.values())


def _why_not_asked(error: Exception) -> str:
    if isinstance(error, SchemaRegistryError):
        return str(error)
    return (
        f"Fogline could not ask the schema registry, because of a fault of its own ({type(error).__name__})."
    )


def _pause_s(tries: int) -> float:
    return float(min(2 ** min(tries, 10), ASK_S_MAX))
