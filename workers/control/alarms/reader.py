"""Reads the rows of alert elements, and raises and clears alarms by them.

What a read changes, and how far it has read, are one transaction of the database. So a restart neither loses
a row nor counts one twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic

from django.db import transaction
from django.utils import timezone

from pipeline_runtime.kafka.clients import TopicPartition
from pipeline_runtime.kafka.follower import Follower
from pipeline_runtime.kafka.peek import PeekedRecord
from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from webapp.alarms.models import Alarm, AlertReading
from webapp.alarms.rows import QUIET, plain_key, said, severity_of
from webapp.alarms.state import Raise, Severity
from webapp.alarms.taking import OPEN_PER_ELEMENT_MAX, OTHER_KEYS, About, Step, clear_all, take
from webapp.audit.records import record_event
from webapp.monitoring.streams import fields_of
from webapp.placements.models import Deployment, GroupPlacement
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.periodic import Periodic

EACH_S = 1.0
FIND_S = 5.0
STORE_S = 10.0
"""Positions that have passed no row are stored so often."""
ROWS_MAX = 5_000
"""How many rows one look reads, of all streams together."""
STREAMS_MAX = 500


class Overtaken(Exception):
    """Another process has read on. Its positions are read again."""


@dataclass
class Stream:
    """The output of an alert element, and how far it was read."""

    deployment: str
    source: str  # element.port
    topic: str
    about: About
    ends: bool
    """its rows say when an alarm is cleared"""
    severity: Severity
    """of its alarms, unless a row says another"""
    is_answering: bool
    """its node is heard, so no rows means that nothing raises an alarm"""
    positions: dict[int, int] = field(default_factory=dict)
    """as they are stored: behind each row that counts"""
    reached: dict[int, int] = field(default_factory=dict)
    """the same or further on, where no rows were"""
    stored_at_s: float = 0.0
    is_at_end: bool = False


class AlertReader(Periodic):
    """If it fails, what was not stored is read again."""

    name, failure = "alarms", "the rows of alert elements were not read this time"

    def __init__(self, context: ControlContext) -> None:
        super().__init__(context, EACH_S)
        self._follower: Follower | None = None
        self._streams: dict[str, Stream] = {}  # by topic
        self._find_at_s = 0.0
        self._bulkhead = Bulkhead()

    def let_go(self) -> None:
        self._streams = {}
        self._find_at_s = 0.0
        if self._follower is not None:
            with suppress(Exception):
                self._follower.close()
            self._follower = None

    def look(self) -> None:
        """Reads once. Before, when it is time, finds out what there is to read, and clears what nothing else
        clears."""
        if monotonic() >= self._find_at_s:
            self._find()
            self._clear_quiet()
            self._find_at_s = monotonic() + FIND_S
        if not self._streams or self._follower is None:
            return
        by_topic: dict[str, list[PeekedRecord]] = {}
        for tp, record in self._follower.read(ROWS_MAX, EACH_S):
            by_topic.setdefault(tp.topic, []).append(record)
        reached: dict[str, dict[int, int]] = {}
        for tp, at in self._follower.positions().items():
            reached.setdefault(tp.topic, {})[tp.partition] = at
        for topic, stream in list(self._streams.items()):
            alert = f"Alarms of {stream.about.title} are not raised now. Everything else works."
            with self._bulkhead.only(f"reading alerts of {topic}", alert, ""):
                self._take(stream, by_topic.get(topic, []), reached.get(topic, {}))
                continue
            self._read_again(topic)

    def _read_again(self, topic: str) -> None:
        """Goes on from what is stored, since what was read was not taken."""
        del self._streams[topic]
        self._find_at_s = 0.0

    def _take(self, stream: Stream, records: list[PeekedRecord], read_to: dict[int, int]) -> None:
        # Kafka may not know all partitions of the topic yet.
        reached = stream.positions | read_to
        if any(at < stream.positions.get(partition, 0) for partition, at in reached.items()):
            raise Overtaken(f"{stream.topic} was made again")
        idle = not records and monotonic() - stream.stored_at_s < STORE_S
        if idle or reached == stream.positions:
            stream.reached = reached
            return
        with transaction.atomic():
            row = AlertReading.objects.select_for_update().get(
                deployment=stream.deployment, stream=stream.source
            )
            if _by_partition(row.positions) != stream.positions:
                raise Overtaken(f"{stream.topic} was read by another process")
            take(_steps(stream, records))
            row.positions = {str(partition): at for partition, at in sorted(reached.items())}
            row.save(update_fields=["positions"])
        stream.positions, stream.reached, stream.stored_at_s = reached, reached, monotonic()

    # -- what there is to read ---------------------------------------------------------------------------

    def _find(self) -> None:
        found = found_streams()
        _clear_gone(found)
        wanted = {stream.topic: stream for stream in found[:STREAMS_MAX]}
        if not wanted:
            self.let_go()
            return
        if self._follower is None:
            # What Kafka has deleted is skipped, and no more than that.
            self._follower = Follower(self._context.kafka, reset="earliest")
        for topic in self._streams.keys() - wanted.keys():
            del self._streams[topic]
        for topic, stream in wanted.items():
            known = self._streams.get(topic)
            if known is None:
                self._streams[topic] = stream
                stream.positions = _stored(stream)
                stream.reached = dict(stream.positions)
            else:
                known.about, known.is_answering = stream.about, stream.is_answering
                known.ends, known.severity = stream.ends, stream.severity
        self._follow(self._follower)

    def _follow(self, follower: Follower) -> None:
        starts: dict[TopicPartition, int] = {}
        for topic, stream in self._streams.items():
            bounds = follower.bounds(follower.partitions(topic))
            for tp, (first, end) in bounds.items():
                at = stream.reached.get(tp.partition)
                if at is not None and at < first:
                    _tell_missed(stream, first - at)
                if at is None or not first <= at <= end:  # new, deleted or created again
                    self._set(stream, tp.partition, first)
            ended = [stream.reached[tp.partition] >= end for tp, (_, end) in bounds.items()]
            stream.is_at_end = bool(ended) and all(ended)
            starts |= {tp: stream.reached[tp.partition] for tp in bounds}
        follower.follow(starts)

    def _set(self, stream: Stream, partition: int, at: int) -> None:
        stream.positions[partition] = stream.reached[partition] = at
        AlertReading.objects.filter(deployment=stream.deployment, stream=stream.source).update(
            positions={str(each): place for each, place in sorted(stream.positions.items())}
        )

    def _clear_quiet(self) -> None:
        """Clears alarms that no row clears, when none has raised them for a while. Not while rows wait: one
        of them may raise it again."""
        now = timezone.now()
        for stream in self._streams.values():
            if not stream.is_at_end or not stream.is_answering:
                continue
            old = Alarm.objects.filter(
                source=Alarm.Source.ROWS,
                pipeline=stream.about.pipeline,
                element=stream.about.element,
                cleared_at=None,
                seen_at__lt=now - QUIET,
            )
            if stream.ends:
                old = old.filter(key=OTHER_KEYS)
            why = f"No row has raised it for {QUIET.total_seconds() / 60:.0f} minutes."
            clear_all(old, why)


def found_streams() -> list[Stream]:
    """Returns the outputs of all alert elements that are deployed, without positions."""
    registry, found = default_registry(), []
    rows = GroupPlacement.objects.filter(deployment__status__in=Deployment.ACTIVE)
    related = rows.select_related("deployment__pipeline", "deployment__version", "node")
    for placement in related.order_by("pk"):
        spec, deployment = placement.spec, placement.deployment
        elements = {each["id"]: each for each in spec["elements"]}
        for output in spec["outputs"]:
            element = parse_reference(output["source"])[0]
            try:
                is_alert = registry.get(elements[element]["type"]).category == "alert"
            except OperatorUnknown:
                continue
            if not is_alert or output.get("external"):
                continue
            columns = {each["name"] for each in output["data_schema"]["fields"]}
            about = About(
                Alarm.Source.ROWS,
                f"{deployment.name_of(element)} of {deployment.pipeline.title}",
                pipeline=deployment.pipeline.name,
                element=element,
                node=placement.node.name,
                site=placement.node.place,
                deployment=deployment.pk,
            )
            found.append(
                Stream(
                    deployment.pk,
                    output["source"],
                    output["topic"],
                    about,
                    ends="alarm" in columns,
                    severity=severity_of(elements[element].get("params", {}).get("severity")),
                    is_answering=placement.node.up,
                )
            )
    return found


def _steps(stream: Stream, records: Iterable[PeekedRecord]) -> list[Step]:
    about, now = stream.about, timezone.now()
    open_keys: set[str] | None = None
    steps = []
    for record in records:
        if record.offset < stream.positions.get(record.partition, 0):
            continue
        key = plain_key(record.key or "")
        happening = said(fields_of(record), about.title, key, now, ends=stream.ends, severity=stream.severity)
        if happening is None:
            continue
        if open_keys is None:
            open_keys = _open_keys(about)
        if isinstance(happening, Raise):
            if key not in open_keys and len(open_keys) >= OPEN_PER_ELEMENT_MAX:
                key = OTHER_KEYS
            open_keys.add(key)
        else:
            open_keys.discard(key)
        row = {"stream": stream.source, "partition": record.partition, "offset": record.offset}
        steps.append(Step(replace(about, key=key), happening, row))
    return steps


def _open_keys(about: About) -> set[str]:
    of_element = Alarm.objects.filter(
        source=about.source, pipeline=about.pipeline, element=about.element, cleared_at=None
    )
    return set(of_element.values_list("key", flat=True))


def _clear_gone(streams: Iterable[Stream]) -> None:
    """Clears the alarms of elements that no longer run."""
    there = {(stream.deployment, stream.about.element) for stream in streams}
    # An upgrade takes an element out of one group before it runs in the other.
    for deployment in Deployment.objects.filter(status__in=Deployment.ACTIVE):
        there |= {
            (deployment.pk, element)
            for left in deployment.left_over.values()
            for element in left.get("halted", ())
        }
    gone = [
        alarm.pk
        for alarm in Alarm.objects.filter(source=Alarm.Source.ROWS, cleared_at=None)
        if (alarm.deployment, alarm.element) not in there
    ]
    clear_all(Alarm.objects.filter(pk__in=gone), "The element that raised it is no longer deployed.")


def _stored(stream: Stream) -> dict[int, int]:
    row, _ = AlertReading.objects.get_or_create(deployment_id=stream.deployment, stream=stream.source)
    return _by_partition(row.positions)


def _by_partition(positions: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): at for partition, at in positions.items()}


def _tell_missed(stream: Stream, count: int) -> None:
    """Records that Kafka had deleted rows before they were read, since control was away for long."""
    record_event(
        "alarm.rows_missed",
        f"Up to {count:,} alert rows of {stream.about.title} were deleted by Kafka before control could read"
        " them, because control was away. Alarms that they raised or cleared are not known.",
        severity="warning",
        pipeline=stream.about.pipeline,
        element=stream.about.element,
    )
    reading = AlertReading.objects.filter(deployment=stream.deployment, stream=stream.source)
    known = reading.values_list("missed", flat=True).first() or 0
    reading.update(missed=known + count)
