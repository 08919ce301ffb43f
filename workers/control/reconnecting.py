"""Where groups go on whose inputs an upgrade changes: what they leave is noted, and who goes on from there.

`Deployment.left` holds each input that a group no longer reads until somebody else has been ordered to begin
there, or the upgrade has ended well. So one that fails anywhere is followed by one that still knows it. How
far a group has come says its journal, which nothing trims or deletes until then.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from pipeline_runtime.journal.positions import read_positions
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.reading import has_unread
from pipeline_runtime.model.ids import journal_topic
from pipeline_runtime.model.spec import GroupSpec, InputStream
from pipeline_runtime.planning.reconnect import NewInput, Reconnections, reconnections
from webapp.placements.models import Deployment, GroupPlacement
from webapp.placements.selectors import left_by, specs_of
from workers.control.context import now_ms
from workers.control.operation_model import Answer

log = logging.getLogger(__name__)


def connections(deployment: Deployment, specs: Sequence[GroupSpec]) -> Reconnections:
    """What of `specs` is connected otherwise than what runs now; of a group that was changed, nothing."""
    return reconnections(specs_of(deployment), specs, left_by(deployment))


def asks(connected: Reconnections, groups: Collection[str]) -> bool:
    """Whether positions have to be read before these groups can be ordered."""
    return any(item.giver is not None for group in groups for item in connected.of(group)) or any(
        item.group in groups for item in connected.last_rows
    )


def positions(
    deployment: Deployment, connected: Reconnections, groups: Collection[str], kafka: KafkaSettings
) -> Answer:
    """From Kafka, outside of a transaction: where these groups begin in what others have read before them."""
    starts: dict[str, dict[str, int]] = {}
    try:
        journals = _Journals(deployment, kafka)
        for item in (item for group in groups for item in connected.of(group)):
            if item.giver is None:
                continue
            found = journals.stopped(item)
            if isinstance(found, str):
                return Answer(now_ms(), refused=found)
            starts.setdefault(item.group, {}).update(found)
        for last in (last for last in connected.last_rows if last.group in groups):
            at = journals.of(last.group).get(_key(last.stream))
            if at is not None and has_unread(kafka, last.stream.topic, at):
                names = deployment.name_of(last.group), _producer(last.stream)
                return Answer(now_ms(), unread=f"{names[0]} to read the last rows of {names[1]}")
    except Exception as error:
        log.debug("positions of %s were not read", deployment.pk, exc_info=error)
        return Answer(
            now_ms(), away=f"Kafka at {kafka.bootstrap} did not say where elements stopped ({error})"
        )
    return Answer(now_ms(), starts=starts)


class _Journals:
    """Of the groups of a deployment; each is read once."""

    def __init__(self, deployment: Deployment, kafka: KafkaSettings) -> None:
        self._deployment = deployment
        self._kafka = kafka
        self._read: dict[str, dict[str, int]] = {}

    def of(self, group: str) -> dict[str, int]:
        if group not in self._read:
            self._read[group] = read_positions(self._kafka, journal_topic(self._deployment.pk, group))
        return self._read[group]

    def stopped(self, item: NewInput) -> dict[str, int] | str:
        """Where its giver stands in the stream, or was to begin; or that it is not known."""
        giver, key = item.giver or "", _key(item.stream)
        was_to_begin = self._deployment.left.get(giver, {}).get("starts", {})
        at = self.of(giver).get(key, was_to_begin.get(key))
        if at is None:
            name = self._deployment.name_of(giver)
            return f"It is not known where {name} stopped reading {_producer(item.stream)}"
        return {key: at}


def order_starts(
    connected: Reconnections, group: str, found: Mapping[str, Mapping[str, int]]
) -> dict[str, int]:
    """ClaimOrder.starts of the group; `found`: from `positions`."""
    whole = {_key(item.stream): 0 for item in connected.of(group) if item.whole}
    return {**whole, **found.get(group, {})}


def note_left(placement: GroupPlacement, spec: GroupSpec | None) -> None:
    """Before it gets this spec, or is ended for good (None): what it reads now and will not. Its deployment
    is not saved."""
    deployment, was = placement.deployment, GroupSpec.model_validate(placement.spec)
    kept = set() if spec is None else {stream.topic for stream in spec.inputs}
    before = [each for each in left_by(deployment) if each.group == placement.group]
    inputs = {stream.topic: stream for each in [*before, was] for stream in each.inputs}
    inputs = {topic: stream for topic, stream in inputs.items() if topic not in kept}
    if spec is not None and not inputs:
        return
    starts = deployment.left.get(placement.group, {}).get("starts", {}) | placement.starts
    left = was.model_copy(update={"inputs": tuple(inputs.values())})
    deployment.left[placement.group] = {"spec": left.model_dump(mode="json"), "starts": starts}


def taken_over(deployment: Deployment, inputs: Iterable[NewInput]) -> None:
    """Who reads these from now on has been ordered to: nobody else is to begin there. Not saved."""
    for item in inputs:
        left = deployment.left.get(item.giver or "")
        if left is not None:
            rest = [stream for stream in left["spec"]["inputs"] if stream["topic"] != item.stream.topic]
            left["spec"]["inputs"] = rest


def _key(stream: InputStream) -> str:
    """Fogline's own streams have one partition."""
    return f"{stream.topic}-0"


def _producer(stream: InputStream) -> str:
    return stream.source.partition(".")[0]
