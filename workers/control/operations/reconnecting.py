"""Where groups go on if an upgrade changes their inputs, or runs their elements in other groups.

`Deployment.left_over` holds each input that a group no longer reads, and each element that is to run in
another group, until another group was ordered to begin there or the upgrade has ended well. So an upgrade
that fails anywhere is followed by one that still knows it. A group's journal says how far it has come. The
journal is neither trimmed nor deleted until then.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipeline_runtime.journal.positions import read_positions
from pipeline_runtime.journal.records import ENDED
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.reading import TopicEnd, has_unread
from pipeline_runtime.model.ids import journal_topic, position_key
from pipeline_runtime.model.spec import GroupSpec, InputStream
from pipeline_runtime.planning.reconnect import Reconnections, reconnections
from pipeline_runtime.planning.regroup import LastRows, producer_of
from webapp.placements.models import Deployment, GroupPlacement
from webapp.placements.selectors import left_over_of, specs_of
from workers.control.context import now_ms
from workers.control.operations.model import Answer

log = logging.getLogger(__name__)


def connections(deployment: Deployment, specs: Sequence[GroupSpec]) -> Reconnections:
    """Returns how the connections in `specs` differ from those that run now.

    Changed groups differ no more.
    """
    return reconnections(specs_of(deployment), specs, left_over_of(deployment))


def asks(connected: Reconnections, groups: Collection[str]) -> bool:
    """Returns whether positions have to be read before these groups can be ordered."""
    return any(
        connected.sources_of(group)
        or any(item.giver is not None or item.behind for item in connected.of(group))
        for group in groups
    ) or any(last.group in groups or last.taker in groups for last in connected.last_rows)


def positions(
    deployment: Deployment, connected: Reconnections, groups: Collection[str], kafka: KafkaSettings
) -> Answer:
    """Asks Kafka where these groups begin in streams that others have read before them.

    Must not run in a transaction.
    """
    starts: dict[str, dict[str, Any]] = {}
    try:
        journals = _Journals(deployment, kafka)
        for group in groups:
            found = journals.begins(group, connected)
            if isinstance(found, str):
                return Answer(now_ms(), refused=found)
            starts[group] = found
        for last in connected.last_rows:
            if not {last.group, last.taker}.isdisjoint(groups) and journals.has_unread(last):
                reader, producer = (
                    deployment.name_of(id) for id in (last.stream.consumer, producer_of(last.stream))
                )
                if last.taker in groups:
                    why = f"{reader} has ended and has not read the last rows of {producer}"
                    return Answer(now_ms(), refused=f"{why}: deploy the former version first")
                return Answer(now_ms(), unread=f"{reader} to read the last rows of {producer}")
    except Exception as error:
        log.debug("positions of %s were not read", deployment.pk, exc_info=error)
        return Answer(
            now_ms(), away=f"Kafka at {kafka.bootstrap} did not say where elements stopped ({error})"
        )
    return Answer(now_ms(), starts=starts)


class _Journals:
    """The journals of a deployment's groups. Each is read once."""

    def __init__(self, deployment: Deployment, kafka: KafkaSettings) -> None:
        self._deployment = deployment
        self._kafka = kafka
        self._read: dict[str, dict[str, Any]] = {}

    def of(self, group: str) -> dict[str, Any]:
        if group not in self._read:
            self._read[group] = read_positions(self._kafka, journal_topic(self._deployment.pk, group))
        return self._read[group]

    def begins(self, group: str, connected: Reconnections) -> dict[str, Any] | str:
        """Returns where this group goes on in what others have read before it, or why nobody knows that."""
        found: dict[str, Any] = {}
        ended: set[str] = set()
        taken: list[tuple[str, str, str]] = []
        for item in connected.of(group):
            if item.behind:
                found[_key(item.stream)] = self._end(item.stream.topic)
                continue
            taken += [(item.giver, key, producer_of(item.stream)) for key in _keys(item.stream) if item.giver]
        taken += [(item.giver, item.element, item.element) for item in connected.sources_of(group)]
        for giver, key, name in taken:
            # Where it stands, or was ordered to begin.
            stands = {**self._was_to_begin(giver), **self.of(giver)}
            if key in stands:
                found[key] = stands[key]
                ended |= {key}.intersection(stands.get(ENDED, ()))
            elif self.of(giver) or group not in connected.begins:
                names = self._deployment.name_of(giver), self._deployment.name_of(name)
                return f"Nobody knows where {names[0]} stopped reading {names[1]}"
            # Otherwise it has never owned, and the group that comes instead begins as it would have.
        return {**found, ENDED: sorted(ended)} if ended else found

    def _was_to_begin(self, group: str) -> dict[str, Any]:
        starts: dict[str, Any] = self._deployment.left_over.get(group, {}).get("starts", {})
        return starts

    def has_unread(self, last: LastRows) -> bool:
        key = _key(last.stream)
        at = self.of(last.group).get(key)
        if at is None and last.writer is not None:
            placed = self._deployment.placements.filter(group=last.group).first()
            at = (self._was_to_begin(last.group) if placed is None else placed.starts).get(key, 0)
        return at is not None and has_unread(self._kafka, last.stream.topic, at)

    def _end(self, topic: str) -> int:
        end = TopicEnd(self._kafka, topic)
        try:
            return end.ask(hidden=True)
        finally:
            end.close()


def order_starts(
    connected: Reconnections, group: str, found: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns ClaimOrder.positions of the group. `found` comes from `positions`."""
    whole = {_key(item.stream): 0 for item in connected.of(group) if item.whole}
    return {**whole, **found.get(group, {})}


def note_left_over(placement: GroupPlacement, spec: GroupSpec | None, halted: Collection[str] = ()) -> None:
    """Notes what a group reads now and will not read with this spec, or with None, which ends it for good.

    `halted` are its elements that are to go on in another group. The caller saves its deployment.
    """
    deployment, was = placement.deployment, GroupSpec.model_validate(placement.spec)
    kept = set() if spec is None else {stream.topic for stream in spec.inputs}
    before = [each for each in left_over_of(deployment) if each.group == placement.group]
    inputs = [stream for each in [*before, was] for stream in each.inputs if stream.topic not in kept]
    inputs = [*{(stream.topic, stream.consumer): stream for stream in inputs}.values()]
    if spec is not None and not inputs:
        return
    starts = deployment.left_over.get(placement.group, {}).get("starts", {}) | placement.starts
    left = was.model_copy(update={"inputs": tuple(inputs)})
    deployment.left_over[placement.group] = {
        "spec": left.model_dump(mode="json"),
        "starts": starts,
        "node": placement.node.name,
        "halted": sorted(halted),
    }


def taken_over(deployment: Deployment, connected: Reconnections, groups: Collection[str]) -> None:
    """Notes that these groups were ordered to own, so nobody else begins where they do.

    The caller saves it.
    """
    for item in (item for group in groups for item in connected.of(group)):
        left = deployment.left_over.get(item.giver or "")
        if left is not None:
            rest = [stream for stream in left["spec"]["inputs"] if stream["topic"] != item.stream.topic]
            left["spec"]["inputs"] = rest
    placed = deployment.placements.filter(group__in={*groups} & {*connected.begins})
    runs = {element["id"] for placement in placed for element in placement.spec["elements"]}
    for group, left in [*deployment.left_over.items()]:
        halted = left.get("halted", [])
        left["halted"] = [id for id in halted if id not in runs]
        if halted and not left["halted"]:
            del deployment.left_over[group]  # the groups that have its elements know where each begins


def _key(stream: InputStream) -> str:
    """Fogline's own streams have one partition."""
    return position_key(stream.topic, 0)


def _keys(stream: InputStream) -> list[str]:
    return [position_key(stream.topic, partition) for partition in range(stream.partitions)]
