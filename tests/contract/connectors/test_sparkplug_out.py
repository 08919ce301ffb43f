"""An edge node of Sparkplug B that sends rows, beside a real mosquitto and hosts that read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from pipeline_runtime.connectors import mqtt_session, sparkplug_out
from pipeline_runtime.connectors.mqtt import MqttIngester
from pipeline_runtime.connectors.mqtt_session import Session
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Noted, Place
from pipeline_runtime.connectors.sparkplug import parsed, rebirth_command
from pipeline_runtime.connectors.sparkplug_edge import Message
from pipeline_runtime.connectors.sparkplug_host import state, state_topic
from pipeline_runtime.connectors.sparkplug_out import SparkplugDeliverer
from pipeline_runtime.connectors.trial import MemoryNotes, RunningTrial, trial_deliverer
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.mqtt import MqttInParams
from pipeline_runtime.operators.sparkplug import SparkplugOutParams
from tests.brokers import Broker
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

SCHEMA = StreamSchema(
    fields=(Field(name="line", type=FieldType.STRING), Field(name="speed", type=FieldType.NUMBER))
)
BORN_MS = 1_764_000_000_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("mosquitto")) as running:
        yield running


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may pass a message on late."""
    monkeypatch.setattr(sparkplug_out, "PASSED_S", 60)


def deliverer(
    broker: Broker, node: str, connection: Mapping[str, Any] | None = None, **params: Any
) -> SparkplugDeliverer:
    given = {"connection": "b", "group": "plant", "node": node, **params}
    made = SparkplugOutParams.model_validate(given)
    place = Place("dep", node, made, broker.connection(**(connection or {})), rows=SCHEMA)
    found = SparkplugDeliverer(place)
    found.notes = MemoryNotes()
    return found


def batch(*speeds: float, first: int = 0) -> Batch:
    rows = [{"line": "l1", "speed": each} for each in speeds]
    times_ms = [BORN_MS + first + number for number in range(len(rows))]
    offsets = [first + number for number in range(len(rows))]
    return Batch(rows, times_ms, offsets, first, first + len(rows))


class Heard:
    """What a broker has passed on of an edge node."""

    def __init__(self, broker: Broker, node: str) -> None:
        self.all: list[tuple[str, Any]] = []
        self._node = node
        self.client = broker.client(self._take, "spBv1.0/plant/#")

    def _take(self, topic: str, payload: bytes) -> None:
        _, _, kind, node, *device = topic.split("/")
        if node == self._node and kind != "NCMD":
            self.all.append(("/".join((kind, *device)), parsed(payload)))

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.all]

    def comes(self, *kinds: str) -> Sequence[Any]:
        """Returns the newest messages when they are of these kinds."""
        wait_until(lambda: self.kinds[-len(kinds) :] == list(kinds), lambda: f"{kinds} of {self.kinds}")
        return [payload for _, payload in self.all[-len(kinds) :]]


Hear = Callable[[str], Heard]


@pytest.fixture
def hear(broker: Broker) -> Iterator[Hear]:
    made: list[Heard] = []

    def hear(node: str) -> Heard:
        made.append(Heard(broker, node))
        return made[-1]

    yield hear
    for each in made:
        each.client.disconnect()
        each.client.loop_stop()


def number_of(payload: Any) -> int:
    """Returns by which number a birth and a death belong together."""
    [found] = [each.long_value for each in payload.metrics if each.name == "bdSeq"]
    return int(found)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_rows_come_between_a_birth_and_a_death(broker: Broker, hear: Hear, version: str) -> None:
    node = f"press {version}"
    heard = hear(node)
    rows = [{"line": "l1", "speed": 1.5}, {"line": None, "speed": 2.5}, {"line": "\ud800", "speed": 3.5}]
    taken = trial_deliverer(deliverer(broker, node, {"version": version}), rows)
    assert [each.reason for each in taken.refused] == ["its line holds a character that no text can have"]
    birth, first, second, death = heard.comes("NBIRTH", "NDATA", "NDATA", "NDEATH")
    assert [each.seq for each in (birth, first, second)] == [0, 1, 2]
    assert [(each.alias, each.double_value) for each in second.metrics if not each.is_null] == [(2, 2.5)]
    assert number_of(birth) == number_of(death) == 0


def test_a_host_that_comes_later_is_told_the_aliases_and_the_last_values(broker: Broker) -> None:
    sends = deliverer(broker, "mill")
    sends.open(1)
    assert sends.deliver(batch(1.5)) == []
    columns = [{"name": "speed", "type": "number"}]
    given = {"connection": "b", "payload": "sparkplug", "topics": ["spBv1.0/plant/+/mill/#"]}
    place = Place(
        "dep",
        "reads",
        MqttInParams.model_validate({**given, "columns": columns}),
        broker.connection(rebirths=True),
    )
    host = RunningTrial(MqttIngester(place))
    wait_until(lambda: host.status.state == "connected", "the host")
    sends.deliver(batch(2.5, first=1))

    def rows() -> list[tuple[str, float | None]]:
        return [(each["levels"][2], each["value"].get("speed")) for each in host.taken.rows]

    def comes(*wanted: tuple[str, float | None]) -> None:
        # A busy host may ask twice for the birth.
        wait_until(
            lambda: [each for each in rows() if each[0] != "NBIRTH"] == list(wanted),
            lambda: f"{wanted} of {rows()}",
        )

    def is_born() -> bool:
        sends.idle()  # as each half second without rows
        return bool(rows())

    wait_until(is_born, "the birth that the host has asked for")
    comes(("NDATA", 2.5))
    sends.deliver(batch(3.5, first=2))
    comes(("NDATA", 2.5), ("NDATA", 3.5))
    sends.close()
    comes(("NDATA", 2.5), ("NDATA", 3.5), ("NDEATH", None))
    assert rows()[0] == ("NBIRTH", 2.5)
    host.stop()


def test_a_lost_connection_is_a_death_and_the_next_one_has_the_next_number(
    broker: Broker, hear: Hear
) -> None:
    heard = hear("saw")
    sends = deliverer(broker, "saw")
    sends.open(1)
    sends.deliver(batch(1.5))
    session = sends._session
    assert session is not None
    session.client.socket().close()
    birth, _, death = heard.comes("NBIRTH", "NDATA", "NDEATH")
    assert number_of(birth) == number_of(death) == 0

    def lost() -> bool:
        try:
            sends.deliver(batch(2.5, first=1))
        except ConnectorError:
            return True
        return False

    wait_until(lost, "the loss to be noticed")
    sends.close()
    sends.open(1)
    sends.deliver(batch(2.5, first=1))
    birth, data = heard.comes("NBIRTH", "NDATA")
    assert (number_of(birth), birth.seq, data.seq) == (1, 0, 1)
    # What was given to a connection that is lost may come again, and a birth says the newest value.
    assert birth.metrics[1].double_value in (1.5, 2.5)
    sends.close()
    heard.comes("NDEATH")


def test_many_commands_bring_few_births(broker: Broker, hear: Hear, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = hear("drill")
    sends = deliverer(broker, "drill")
    monkeypatch.setattr(sparkplug_out, "BIRTH_EVERY_S", 3600)
    sends.open(1)
    broker.publish("spBv1.0/plant/NCMD/drill", *[rebirth_command(BORN_MS)] * 5)
    wait_until(sends._asked.is_set, "the command")
    sends.deliver(batch(1.5, 2.5))
    heard.comes("NBIRTH", "NDATA", "NDATA")
    monkeypatch.setattr(sparkplug_out, "BIRTH_EVERY_S", 0)
    sends.deliver(batch(3.5, first=2))
    birth, data = heard.comes("NBIRTH", "NDATA")
    assert (birth.metrics[1].double_value, data.metrics[-1].double_value, data.seq) == (2.5, 3.5, 1)
    sends.close()


def test_rows_wait_while_the_primary_host_is_not_online(
    broker: Broker, hear: Hear, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = state_topic("scada")
    heard = hear("lathe")
    sends = deliverer(broker, "lathe", host_id="scada")
    with monkeypatch.context() as soon:
        soon.setattr(sparkplug_out, "HOST_S", 0.1)
        with pytest.raises(ConnectorError, match="scada is not online at the MQTT broker"):
            sends.open(1)
    sends.close()
    broker.publish(topic, state(online=True, at_ms=5), retain=True)
    monkeypatch.setattr(sparkplug_out, "HOST_S", 60)
    sends.open(1)
    sends.deliver(batch(1.5))
    heard.comes("NBIRTH", "NDATA")
    broker.publish(topic, state(online=False, at_ms=4))
    broker.publish(topic, state(online=False, at_ms=6))

    def waits() -> str:
        try:
            sends.idle()
        except ConnectorError as error:
            return str(error)
        return ""

    assert "so rows wait for it" in wait_until(waits, "the host to be away")
    sends.close()
    heard.comes("NBIRTH", "NDATA", "NDEATH")


def test_a_broker_that_hangs_has_no_rows(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt_session, "CONFIRMED_S", 0.5)
    monkeypatch.setattr(sparkplug_out, "PASSED_S", 0.5)
    sends = deliverer(broker, "hangs")
    sends.open(1)
    broker.hang()
    try:
        with pytest.raises(ConnectorError, match=r"has not answered|was lost"):
            sends.deliver(batch(1.5))
    finally:
        broker.go_on()
    sends.close()


@pytest.mark.parametrize(
    ("rights", "opens", "words"),
    [
        ("topic read #", False, r"first message to spBv1\.0/plant/NBIRTH/a: the broker may forbid it"),
        (
            "topic write #",
            False,
            r"not pass on what this user writes to spBv1\.0/plant/NBIRTH/a, so rows wait",
        ),
        (
            "topic read #\ntopic write spBv1.0/plant/NBIRTH/#",
            True,
            r"first message to spBv1\.0/plant/NDATA/a",
        ),
        ("topic write #\ntopic read spBv1.0/plant/NBIRTH/#", True, r"writes to spBv1\.0/plant/NDATA/a"),
    ],
)
def test_an_edge_node_that_may_not_write_or_read_says_so_and_its_rows_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rights: str, opens: bool, words: str
) -> None:
    monkeypatch.setattr(sparkplug_out, "PASSED_S", 0.3)
    file = tmp_path / "rights"
    file.write_text(f"{rights}\n")
    with Broker(tmp_path, None, f"acl_file {file}") as locked:
        sends = deliverer(locked, "a", {"version": "3.1.1"})
        right = r".* Give the user the right to write and to read spBv1\.0/plant/\+/a"
        if opens:
            sends.open(1)
        with pytest.raises(ConnectorError, match=words + right):
            sends.deliver(batch(1.5, 2.5)) if opens else sends.open(1)
        sends.close()


def test_a_row_that_the_broker_drops_without_a_word_is_a_dead_letter(
    broker: Broker, hear: Hear, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = hear("drops")
    sends = deliverer(broker, "drops")
    sends.open(1)
    session = sends._session
    assert session is not None
    publish = session.client.publish

    def drop_large(topic: str, payload: bytes, qos: int) -> None:
        if len(payload) < 500:
            publish(topic, payload, qos)

    monkeypatch.setattr(session.client, "publish", drop_large)
    large = {"line": "x" * 1000, "speed": 1.0}
    rows = [{"line": "l1", "speed": 0.5}, large, {"line": "l1", "speed": 1.5}]
    [refused] = sends.deliver(Batch(rows, [BORN_MS] * 3, [0, 1, 2], 0, 3))
    assert refused.row == 1
    assert re.search(
        r"message of 1\d{3} bytes did not come back .* hosts have it is not known", refused.reason
    )
    *_, asked = heard.comes("NBIRTH", "NDATA", "NDATA", "NDATA")
    assert not asked.metrics
    # Nothing comes behind the last one, so a message without a row is sent.
    monkeypatch.setattr(sparkplug_out, "PASSED_S", 0.3)
    [refused] = sends.deliver(Batch([large], [BORN_MS], [3], 3, 4))
    assert refused.row == 0
    monkeypatch.undo()
    sends.close()


def test_a_row_that_comes_back_when_it_is_sent_again_is_no_dead_letter(
    broker: Broker, hear: Hear, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = hear("overload")
    sends = deliverer(broker, "overload")
    sends.open(1)
    session = sends._session
    assert session is not None
    publish, sent = session.client.publish, count()

    def drop_second(topic: str, payload: bytes, qos: int) -> None:
        if next(sent) != 1:
            publish(topic, payload, qos)

    monkeypatch.setattr(session.client, "publish", drop_second)
    assert sends.deliver(batch(0.5, 1.5, 2.5)) == []
    rows = heard.comes("NBIRTH", "NDATA", "NDATA", "NDATA", "NDATA")[1:4]
    assert [each.metrics[-1].double_value for each in rows] == [0.5, 2.5, 1.5]
    assert [each.metrics[-1].is_historical for each in rows] == [False, False, True]
    monkeypatch.undo()
    sends.close()


def test_births_wait_for_those_before_them(
    broker: Broker, hear: Hear, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = hear("births")
    monkeypatch.setattr(sparkplug_out, "UNCONFIRMED_BYTES", 1)
    sends = deliverer(broker, "births", device="line")
    sends.open(1)
    rows = [{"line": name, "speed": 1.5} for name in ("l1", "l2")]
    assert sends.deliver(Batch(rows, [BORN_MS] * 2, [0, 1], 0, 2)) == []
    sends.close()
    waiting: list[int] = []
    send_birth = sends._send_birth

    def noted(session: Session, birth: Message) -> None:
        waiting.append(sends._passed_on.waiting_bytes)
        send_birth(session, birth)

    monkeypatch.setattr(sends, "_send_birth", noted)
    sends.open(1)
    assert waiting == [0, 0, 0]
    heard.comes("NBIRTH", "DBIRTH/l1", "DBIRTH/l2")
    sends.close()


class InterruptedNotes(MemoryNotes):
    """`then` is done before the next but one change, as by a process that stood still meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.then: list[Callable[[], object]] = []

    def change(self, changed: Callable[[Noted], Noted]) -> None:
        if self.then:
            self.then.pop(0)()
        super().change(changed)


def test_an_owner_that_comes_back_sends_nothing_and_ends_no_later_one(broker: Broker, hear: Hear) -> None:
    heard = hear("owned")
    old, new = deliverer(broker, "owned"), deliverer(broker, "owned")
    notes = InterruptedNotes()
    old.notes = new.notes = notes
    old.open(1)
    old.deliver(batch(1.5))
    new.open(2)
    new.deliver(batch(2.5, first=1))
    birth, _, death, later, _ = heard.comes("NBIRTH", "NDATA", "NDEATH", "NBIRTH", "NDATA")
    assert [number_of(each) for each in (birth, death, later)] == [0, 0, 1]

    def lost() -> bool:
        try:
            old.idle()
        except ConnectorError:
            return True
        return False

    wait_until(lost, "the connection of the old owner to be ended")
    old.close()
    with pytest.raises(
        ConnectorError, match=r"A later owner of this element \(epoch 2\) sends as this"
    ) as told:
        old.open(1)
    assert told.value.lasting
    old.close()
    # One that had begun before the later owner, and stood still before its birth.
    third = deliverer(broker, "owned")
    third.notes = notes
    notes.then = [lambda: None, lambda: third.open(4)]
    with pytest.raises(ConnectorError, match="Another process of this element has begun"):
        new.open(3)
    new.close()
    third.deliver(batch(3.5, first=2))
    heard.comes("NBIRTH", "NDATA")
    assert number_of([each for kind, each in heard.all if kind == "NBIRTH"][-1]) == 3
    assert heard.kinds.count("NBIRTH") == 3
    third.close()
    heard.comes("NDEATH")


def test_rows_of_devices_come_behind_their_births_and_a_silent_device_dies(
    broker: Broker, hear: Hear, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = hear("hall")
    sends = deliverer(broker, "hall", device="line", silent_s=1000)
    sends.open(1)
    rows = [{"line": name, "speed": 1.5} for name in ("l1", "l2", None)]
    [refused] = sends.deliver(Batch(rows, [BORN_MS] * 3, [0, 1, 2], 0, 3))
    assert (refused.row, refused.reason.startswith("its line names no device")) == (2, True)
    session = sends._session
    assert session is not None
    with monkeypatch.context() as small:
        # A device whose first row is refused is not born.
        small.setattr(session, "packet_bytes_max", 1)
        [refused] = sends.deliver(Batch([{"line": "l3", "speed": 1.5}], [BORN_MS], [3], 3, 4))
    assert "the broker takes at most 1" in refused.reason
    messages = heard.comes("NBIRTH", "DBIRTH/l1", "DDATA/l1", "DBIRTH/l2", "DDATA/l2")
    assert [each.seq for each in messages] == [0, 1, 2, 3, 4]
    assert [each.alias for each in messages[-1].metrics] == [2]
    ahead_s = monotonic() + 2000
    monkeypatch.setattr(sparkplug_out, "monotonic", lambda: ahead_s)
    sends.deliver(Batch(rows[:1], [BORN_MS + 1], [3], 3, 4))
    heard.comes("DDEATH/l1", "DDEATH/l2", "DBIRTH/l1", "DDATA/l1")
    sends.close()


def test_another_client_with_the_same_ids_is_told(broker: Broker) -> None:
    sends = deliverer(broker, "twin")
    sends.open(1)
    broker.publish("spBv1.0/plant/NBIRTH/twin", b"")

    def told() -> ConnectorError | None:
        try:
            sends.idle()
        except ConnectorError as error:
            return error
        return None

    error = wait_until(told, "the words")
    assert "another client sends as the edge node plant/twin" in str(error)
    assert "Rows wait" in str(error)
    assert error.lasting
    sends.close()
