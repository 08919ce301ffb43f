"""The connectors of a node: a process for each element that has one. `connecting` decides.

    agent: what is wanted, what owns --> here --lines--> python -m pipeline_runtime.connectors --lines--> here

A process is told its secrets over its standard input alone. It ends when that ends, so it never outlives the
node.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from glob import escape, iglob
from pathlib import Path
from time import monotonic, time
from typing import Any

from pipeline_runtime.connectors.config import ConnectorConfig, Order, name_of
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.connectors import ConnectorStatus, SealedConnection
from pipeline_runtime.model.desired import DesiredReplica, ReplicaNote, ReplicaStatus, Role, Stalled
from pipeline_runtime.model.ids import intake_topic, stream_topic
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from workers.node.connecting import Held, Wanted, deliverers_epoch, may_deliver, may_run, next_act
from workers.node.connector_process import ConnectorProcess
from workers.node.sealed_fields import SealedFields

log = logging.getLogger(__name__)

LOOK_S = 0.5
NOTES_KEPT = 5
FAILING_MS = 1_500
"""A connector that fails for less is not told of."""
QUIET_MS = 8_000
"""A process that says nothing for so long is told of, before it counts as one that hangs."""
_ENDED = ". Its process has ended, and is started again"

Replicas = Iterable[tuple[DesiredReplica, ReplicaStatus | None]]
Concerns = Callable[[GroupSpec], bool]
Key = tuple[str, str]
"""Group id and element."""


class Connectors:
    """A thread from `start` to `close`."""

    def __init__(
        self,
        kafka: KafkaSettings,
        directory: Path,
        cluster_key: str,
        wanted: Callable[[Concerns], tuple[Replicas, Sequence[SealedConnection]]],
        changed: Callable[[], None],
    ) -> None:
        """`wanted(concerns)`: the replicas of this node that concern it, with their statuses, and the
        connections."""
        self._kafka = kafka
        self._directory = directory
        self._sealed = SealedFields(cluster_key)
        self._wanted = wanted
        self._changed = changed
        self._held: dict[Key, _Connector] = {}  # replaced as a whole, so it is read without a lock
        self._odd: set[tuple[str, Key]] = set()  # what went wrong at the last look, and was logged
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="connectors", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def close(self, timeout_s: float) -> None:
        """Ends all of them in order, and kills what has not ended in time."""
        self._closing.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        held = [each for each in self._held.values() if each.process is not None]
        for each in held:
            each.end(forever=False, now_ms=_clock_ms())
        for each in held:
            if each.process is not None:
                each.process.wait(timeout_s)
                each.process.kill()

    def with_connectors(self, statuses: tuple[ReplicaStatus, ...]) -> tuple[ReplicaStatus, ...]:
        """Returns the statuses with what their connectors say. Control ends a group when nothing is told of
        its ingesters any more. So an ingester is told of until Kafka has all that it has left on the disk."""
        held, now_ms = self._held, _wall_ms()
        shown = {
            key: each.status
            for key, each in held.items()
            # Between a process that has ended by itself and the next one, it is still shown why.
            if each.held.running or (each.to_run and each.held.failures)
        }
        # It is looked for after that: whoever has ended by then leaves nothing more there.
        for key in self._spooled():
            left = held[key].status if key in held else ConnectorStatus(element=key[1], since_ms=now_ms)
            shown.setdefault(key, left)

        def with_its_own(status: ReplicaStatus) -> ReplicaStatus:
            mine = [key for key in shown if key[0] == status.group]
            notes = tuple(note for key in mine if key in held for note in held[key].notes)
            return with_told(status, [shown[key] for key in mine], notes, now_ms) if mine else status

        return tuple(map(with_its_own, statuses))

    # -- the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._look()
            except Exception:
                log.exception("the connectors could not be looked at; it is tried again")
            self._wake.wait(LOOK_S)
            self._wake.clear()

    def _look(self) -> None:
        replicas, connections = self._wanted(has_connectors)
        by_name = {each.name: each for each in connections}
        self._sealed.keep(connections)
        wanted: dict[Key, Wanted] = {}
        for want, status in replicas:
            if want.role is not Role.STOPPED:
                wanted |= self._of_replica(want, status, by_name)
        wanted |= self._left(wanted)
        held = dict(self._held)
        for key in [*wanted.keys() | held.keys()]:
            # It is held before it may start a process: whatever fails then, the process is not forgotten.
            each = held.setdefault(key, _Connector(key, self._changed, self._wake.set))
            with self._one_alone("its process", key):
                if not self._tend(each, wanted.get(key)):
                    del held[key]
        self._held = held

    @contextmanager
    def _one_alone(self, what: str, key: Key) -> Iterator[None]:
        """Keeps what goes wrong with one connector from the others, and logs it once."""
        try:
            yield
        except Exception:
            if (what, key) not in self._odd:
                log.exception("the connector of %s: %s has failed; it is tried again", key[1], what)
            self._odd.add((what, key))
        else:
            self._odd.discard((what, key))

    def _tend(self, each: _Connector, want: Wanted | None) -> bool:
        """Returns whether anything is left of it."""
        now_ms = _clock_ms()
        each.note(now_ms)
        match next_act(want, each.held, now_ms):
            case "start":
                assert want is not None
                each.start(want, now_ms)
            case "run":
                assert want is not None
                each.run(want)
            case "end":
                each.end(forever=each.forever or (want is not None and want.forever), now_ms=now_ms)
            case "kill":
                each.kill()
            case "forget":
                return False
        each.to_run = want is not None and want.run
        if want is not None:
            each.forever, each.drains = want.forever, want.drains
        return True

    def _of_replica(
        self, want: DesiredReplica, status: ReplicaStatus | None, connections: Mapping[str, SealedConnection]
    ) -> dict[Key, Wanted]:
        found = {}
        for element in want.spec.elements:
            key = (want.spec.id, element.id)
            with self._one_alone("its configuration", key):
                operator = _operator(element)
                if operator is None:
                    continue
                config = self._config(want.spec, element, operator, connections)
                may = may_run if issubclass(operator, ConnectorSource) else may_deliver
                epoch = 0 if _runs_without_owner(operator) else deliverers_epoch(status)
                found[key] = Wanted(config, may(want, status), epoch, forever=want.retire or want.closing)
        return found

    def _config(
        self,
        spec: GroupSpec,
        element: ElementSpec,
        operator: type[ConnectorSource | ConnectorSink],
        connections: Mapping[str, SealedConnection],
    ) -> str:
        brings = issubclass(operator, ConnectorSource)
        fields, missing = self._sealed.fields(element, operator.given(), connections)
        topic = (intake_topic if brings else stream_topic)(spec.deployment, element.id)
        rows = next((each.data_schema for each in spec.outputs if each.topic == topic), None)
        return ConnectorConfig(
            kind="in" if brings else "out",
            deployment=spec.deployment,
            element=element.id,
            topic=topic,
            dead_letters=spec.dead_letters(element.id),
            connector=operator.connector,
            operator=name_of(operator),
            params=element.params,
            connections=fields,
            missing=missing,
            group=spec.id,
            rows=rows,
            kafka_bootstrap=self._kafka.bootstrap,
            kafka_security=self._kafka.security,
            spool=str(self._spool(spec.id, element.id)),
        ).model_dump_json()

    def _spool(self, group: str, element: str) -> Path:
        return self._directory / group / element / "spool"

    def _spooled(self) -> set[Key]:
        """Returns of whom something is on this node's disk that Kafka does not have."""
        paths = map(Path, iglob(f"{escape(str(self._directory))}/*/*/spool/*.spool"))
        return {(path.parents[2].name, path.parents[1].name) for path in paths}

    def _left(self, wanted: Mapping[Key, Wanted]) -> dict[Key, Wanted]:
        """Returns processes that only take to Kafka what others have left on this node's disk."""
        found = {}
        for key in self._spooled():
            other = wanted.get(key)
            if other is not None and other.run:
                continue
            deployment = key[0].partition(".")[0]
            config = ConnectorConfig(
                kind="drain",
                deployment=deployment,
                element=key[1],
                topic=intake_topic(deployment, key[1]),
                kafka_bootstrap=self._kafka.bootstrap,
                kafka_security=self._kafka.security,
                spool=str(self._spool(*key)),
            )
            forever = other is not None and other.forever
            found[key] = Wanted(config.model_dump_json(), run=True, forever=forever, drains=True)
        return found


class _Connector:
    """One of them, with its process. Changed by the thread alone."""

    def __init__(self, key: Key, changed: Callable[[], None], wake: Callable[[], None]) -> None:
        self.key = key
        self.held = Held()
        self.process: ConnectorProcess | None = None
        self.status = ConnectorStatus(element=key[1])
        self.notes: tuple[ReplicaNote, ...] = ()
        self.forever = self.drains = self.to_run = False
        self._changed, self._wake = changed, wake
        self._said_ms = 0

    def start(self, want: Wanted, now_ms: int) -> None:
        if not self.held.failures:
            self.status = ConnectorStatus(element=self.key[1], since_ms=_wall_ms())
        self.process = ConnectorProcess(want.config, self._said, self._wake)
        self._said_ms = now_ms
        self.held = self.held.started(want.config, now_ms)

    def run(self, want: Wanted) -> None:
        assert self.process is not None
        assert want.epoch is not None
        self.process.say(Order(do="run", epoch=want.epoch).model_dump_json())
        self.held = self.held.told_to_run(want.epoch)
        self._changed()

    def end(self, *, forever: bool, now_ms: int) -> None:
        assert self.process is not None
        self.process.say(Order(do="stop", forever=forever).model_dump_json())
        self.held = replace(self.held, ending_ms=now_ms)

    def kill(self) -> None:
        assert self.process is not None
        log.warning("%s: its connector hangs, and is killed", self.key[1])
        self.process.kill()

    def note(self, now_ms: int) -> None:
        """Takes note of what it has said, and of its end."""
        if self.process is None:
            return
        self.held = replace(self.held, said_ms=self._said_ms)
        if self.process.alive:
            told = silent(self.status, now_ms - self._said_ms, _wall_ms())
            if told is not self.status:
                self.status = told
                self._changed()
        else:
            code = self.process.code
            if self.held.ending_ms is None and not (self.drains and code == 0):
                log.warning("%s: its connector has ended by itself (%s)", self.key[1], code)
                self.status = ended(self.status, code, _wall_ms())
            self.process.kill()
            self.process = None
            self.held = self.held.ended(now_ms)
            self._changed()

    def _said(self, status: ConnectorStatus, note: str) -> None:
        """Called by the process's thread."""
        self._said_ms = _clock_ms()
        if self.held.failures:
            status = with_former(self.status, status)
        turned = (status.state, status.why) != (self.status.state, self.status.why)
        self.status = status
        if note:
            new = ReplicaNote(
                kind="connector.gap", message=f"A gap in {status.element}: {note}.", at_ms=_wall_ms()
            )
            self.notes = (*self.notes, new)[-NOTES_KEPT:]
        if turned or note:
            self._changed()


def has_connectors(spec: GroupSpec) -> bool:
    """Returns whether any of the group's elements has one."""
    return any(_operator(element) is not None for element in spec.elements)


def _operator(element: ElementSpec) -> type[ConnectorSource | ConnectorSink] | None:
    """Returns the element's operator, if it has a connector."""
    try:
        operator = default_registry().get(element.type)
    except OperatorUnknown:
        return None
    return operator if issubclass(operator, ConnectorSource | ConnectorSink) else None


def _runs_without_owner(operator: type[ConnectorSource | ConnectorSink]) -> bool:
    """Returns whether it also runs while its replica does not own yet: a system that does not wait must not
    lose rows."""
    return issubclass(operator, ConnectorSource) and operator.delivery != "exactly once"


def silent(status: ConnectorStatus, silent_ms: int, now_ms: int) -> ConnectorStatus:
    """Returns the status of a connector whose process has said nothing for so long, as each does every
    second. Pure."""
    if status.state != "connected" or silent_ms < QUIET_MS:
        return status
    why = f"its connector has sent no report for {QUIET_MS // 1000} s"
    return status.model_copy(update={"state": "failing", "why": why, "since_ms": now_ms})


def ended(status: ConnectorStatus, code: int | None, now_ms: int) -> ConnectorStatus:
    """Returns the status of a connector whose process has ended by itself. What it has said of the reason
    stays. Pure."""
    again = f"its connector has ended by itself (code {code}), and is started again"
    if status.state != "failing":
        return status.model_copy(update={"state": "failing", "why": again, "since_ms": now_ms})
    said = status.why.partition(_ENDED)[0]
    return status.model_copy(update={"why": said if said == again else f"{said.rstrip('.')}{_ENDED}"})


def with_former(before: ConnectorStatus, now: ConnectorStatus) -> ConnectorStatus:
    """Returns the status of a process that was started again: until it says more, why the one before it ended
    is shown. Pure."""
    if now.state != "starting" or before.state != "failing":
        return now
    return now.model_copy(update={"state": "failing", "why": before.why, "since_ms": before.since_ms})


def with_told(
    status: ReplicaStatus,
    connectors: Sequence[ConnectorStatus],
    notes: tuple[ReplicaNote, ...],
    now_ms: int,
) -> ReplicaStatus:
    """Returns the status with what the group's connectors say. Pure. One that fails keeps the group from
    going on, so it is shown where other stalls are."""
    update: dict[str, Any] = {"connectors": tuple(connectors), "notes": (*status.notes, *notes)}
    failing = [
        each for each in connectors if each.state == "failing" and now_ms - each.since_ms >= FAILING_MS
    ]
    if failing and status.stalled is None:
        why = "; ".join(each.why.rstrip(".") for each in failing)
        update["stalled"] = Stalled(why=why, since_ms=min(each.since_ms for each in failing))
    return status.model_copy(update=update)


def _clock_ms() -> int:
    """Returns the time of a clock that nobody sets: a step of the wall clock must not end connectors."""
    return int(monotonic() * 1000)


def _wall_ms() -> int:
    return int(time() * 1000)
