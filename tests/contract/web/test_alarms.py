"""Alarms by rows and by rules: each row counts once, whatever restarts; people act on them by role."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import newest_offsets
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.connectors import SPOOL_BYTES_MAX, ConnectorStatus
from pipeline_runtime.model.desired import ElementRows, ReplicaError
from pipeline_runtime.model.ids import stream_topic
from tests.contract.web.conftest import PIPELINE, Caller, report
from tests.waiting import PATIENCE_S, wait_until
from webapp.alarms.models import Alarm, AlarmChange, AlertReading, Rule
from webapp.alarms.rows import QUIET
from webapp.alarms.rules import KINDS
from webapp.audit.models import AuditRecord
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.placements.models import ConnectorGaps, ConnectorTrouble, Deployment, Replica
from workers.control.alarms import reader as reading
from workers.control.alarms.keeper import RuleKeeper
from workers.control.alarms.reader import AlertReader

Call = Callable[[str | None], Caller]


@pytest.fixture
def document(document: dict[str, Any]) -> dict[str, Any]:
    """With an alarm by key, and an alert with each row that runs as one with what it reads and what reads
    it."""
    hot = {"column": "mf01_average", "raise_at": 30, "clear_at": 20, "severity": "critical"}
    limit = {"columns": ["mf01_average"], "operator": ">", "limit": 30, "severity": "critical"}
    elements = document["spec"]["elements"]
    elements += [
        {"id": "hot", "type": "hysteresis-alarm", "params": hot, "inputs": {"in": "power"}, "node": "cloud"},
        {"id": "limit", "type": "threshold-alert", "params": limit, "inputs": {"in": "variation"}},
        {
            "id": "few",
            "type": "filter",
            "params": {"condition": "alert_value > 40"},
            "inputs": {"in": "limit"},
        },
    ]
    document["spec"]["groups"][0]["elements"] += ["limit", "few"]
    return document


class Alerts:
    """Rows of the two alert elements, and control's readers of them, one after another."""

    def __init__(self, kafka: str, deployment: Deployment) -> None:
        self.broker = KafkaSettings(kafka)
        self.hot, self.limit, self.averages = (
            stream_topic(deployment.pk, each) for each in ("hot", "limit", "power")
        )
        ensure_topics(self.broker, [Topic(each) for each in (self.hot, self.limit, self.averages)])
        self.reader = self.new_reader()

    def new_reader(self) -> AlertReader:
        context: Any = SimpleNamespace(kafka=self.broker, closing=threading.Event())
        return AlertReader(context)

    def send(self, topic: str, *rows: tuple[str | None, dict[str, Any]]) -> None:
        transactions = Transactions(self.broker, f"alerts.{topic}")
        transactions.initialise()
        transactions.commit(
            [
                OutgoingRecord(
                    topic, json.dumps(row).encode(), None if key is None else key.encode(), 1000 + n
                )
                for n, (key, row) in enumerate(rows)
            ]
        )
        transactions.close()

    def say(self, *said: str) -> None:
        """`a+` raises the alarm of a, `a-` clears it."""
        words = {"+": "raised", "-": "cleared"}
        rows = [(each[:-1], {"alarm": words[each[-1]], "mf01_average": 31.5}) for each in said]
        self.send(self.hot, *rows)

    def read(self) -> None:
        """Reads to the ends of both."""
        ends = {topic: newest_offsets(self.broker, topic, 1)[0][1] for topic in (self.hot, self.limit)}

        def is_read() -> bool:
            self.reader.look()
            streams = self.reader._streams
            return all(t in streams and streams[t].positions.get(0, 0) >= end - 1 for t, end in ends.items())

        wait_until(is_read, "the alerts to be read")

    def restart(self) -> None:
        self.reader.let_go()
        self.reader = self.new_reader()


@pytest.fixture
def alerts(kafka: str, settings: Any, deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Alerts:
    security = {"bootstrap_timeout_ms": PATIENCE_S * 1000}
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"kafka": kafka, "kafka_security": security})
    monkeypatch.setattr(reading, "FIND_S", 0.0)
    return Alerts(kafka, deployment)


def shown() -> list[tuple[str, str, int, bool]]:
    """Element, key, count and whether it is open, oldest first."""
    rows = Alarm.objects.order_by("id")
    return [(each.element, each.key, each.count, each.cleared_at is None) for each in rows]


def test_each_row_counts_once_whatever_restarts(alerts: Alerts, monkeypatch: pytest.MonkeyPatch) -> None:
    alerts.say("a+", "b+", "a-", "a+")
    alerts.send(alerts.limit, *[(None, {"alert_message": "too much", "alert_severity": "critical"})] * 3)
    alerts.read()
    expected = [("hot", "a", 1, False), ("hot", "a", 1, True), ("hot", "b", 1, True), ("limit", "", 3, True)]
    assert sorted(shown()) == expected
    # Another control process reads on behind what is stored.
    alerts.restart()
    alerts.say("b-")
    alerts.read()
    assert sorted(shown()) == [each if each[1] != "b" else ("hot", "b", 1, False) for each in expected]

    # Kafka does not know the topic at first: nothing is read again.
    hot = alerts.reader._streams[alerts.hot]
    alerts.reader._take(hot, [], {})
    assert AlertReading.objects.get(stream=hot.source).positions == {
        str(partition): at for partition, at in hot.positions.items()
    }
    assert hot.positions

    # It dies after the alarms were changed and before how far it has read is stored: neither is stored.
    stored, save = Alarm.objects.count(), AlertReading.save

    def dies(self: AlertReading, *args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(AlertReading, "save", dies)
    alerts.say("c+")
    with pytest.raises(KeyboardInterrupt):
        alerts.read()
    assert Alarm.objects.count() == stored
    monkeypatch.setattr(AlertReading, "save", save)
    alerts.restart()
    alerts.read()
    assert [each for each in shown() if each[1] == "c"] == [("hot", "c", 1, True)]
    kinds = AlarmChange.objects.filter(alarm__key="a").order_by("id").values_list("kind", flat=True)
    assert [*kinds] == ["raised", "cleared", "raised"]

    # What no row clears ends when no row raises it any more, and all ends with the deployment.
    Alarm.objects.filter(element="limit").update(seen_at=timezone.now() - QUIET - timedelta(seconds=1))
    wait_until(lambda: (alerts.read(), ("limit", "", 3, False) in shown())[1], "the quiet one to be cleared")
    assert ("hot", "c", 1, True) in shown()
    # An upgrade has taken the element out of one group, and it does not run in the other yet.
    left = {"hot": {"halted": ["hot"]}}
    Deployment.objects.update(left_over=left)
    gone = [each for each in reading.found_streams() if each.about.element != "hot"]
    reading._clear_gone(gone)
    assert ("hot", "c", 1, True) in shown()
    Deployment.objects.update(left_over={})
    Deployment.objects.update(status="undeployed")
    alerts.reader.look()
    assert not any(is_open for *_, is_open in shown())
    alerts.reader.let_go()


def test_people_act_on_an_alarm_and_its_history_says_who(alerts: Alerts, caller: Call) -> None:
    alerts.send(alerts.averages, (None, {"mf01_average": 31.5}))
    alerts.say("a+")
    alerts.read()
    operator = caller("operator")
    [alarm] = operator.get("/alarms").json()["alarms"]
    assert (alarm["status"], alarm["severity"], alarm["key"], alarm["node"], alarm["values"]) == (
        "raised",
        "critical",
        "a",
        "cloud",
        {"mf01_average": 31.5},
    )
    row = alarm["row"]
    path = f"/pipelines/{PIPELINE}/streams/{row['stream']}/trace"
    trace = operator.get(f"{path}?partition={row['partition']}&offset={row['offset']}").json()
    assert (trace["element"], trace["record"]["key"]) == ("hot", "a")
    [averages, _] = trace["steps"]
    assert (averages["element"], averages["stream"]) == ("hot", "power.out")
    assert [each["value"] for each in averages["records"]] == [{"mf01_average": 31.5}]
    [line, *_] = operator.get("/overview").json()["attention"]
    assert (line["kind"], line["alarm"], line["element"]) == ("alarm.raised", alarm["id"], "hot")
    path = f"/alarms/{alarm['id']}"
    assert operator.post(f"{path}/acknowledge", {"note": "on it"}).json()["status"] == "acknowledged"
    assert operator.post(f"{path}/acknowledge", {"note": "again"}).status_code == 200
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    assert operator.post(f"{path}/silence", {"note": "known", "until": until}).json()["status"] == "silenced"
    assert operator.get("/overview").json()["attention"][:1] != [line]
    found = operator.post(f"{path}/unsilence", {}).json()
    assert [(each["kind"], each["who"], each["note"]) for each in found["changes"][1:]] == [
        ("acknowledged", "operator-user", "on it"),
        ("silenced", "operator-user", "known"),
        ("unsilenced", "operator-user", ""),
    ]
    done = AuditRecord.objects.filter(action__startswith="alarm.").values_list("action", flat=True)
    assert sorted(done) == ["alarm.acknowledge", "alarm.silence", "alarm.unsilence"]
    found = operator.post(f"{path}/clear", {"note": "taken away"}).json()
    last = found["changes"][-1]
    assert (last["kind"], last["who"], last["note"]) == ("cleared", "operator-user", "taken away")
    alerts.say("a-")
    alerts.read()
    assert operator.post(f"{path}/acknowledge", {}).status_code == 409
    assert operator.get("/alarms").json()["alarms"] == []
    assert [each["id"] for each in operator.get("/alarms?which=past&text=hot").json()["alarms"]] == [
        alarm["id"]
    ]
    alerts.reader.let_go()


def test_a_rule_raises_an_alarm_once_and_clears_it(deployment: Deployment, caller: Call) -> None:
    operator = caller("operator")
    for name, rule in {
        "silent": {"metric": "node_silent", "severity": "critical"},
        "lag": {"metric": "lag_rows", "raise_at": 1000, "pipeline": PIPELINE},
    }.items():
        assert operator.post("/alarms/rules", {"name": name, "rule": rule}).status_code == 201
    assert operator.post("/alarms/rules", {"name": "lag", "rule": {"metric": "lag_rows"}}).status_code == 409
    context: Any = SimpleNamespace(closing=threading.Event())
    RuleKeeper(context).look()
    assert Alarm.objects.count() == 0
    Node.objects.filter(name="edge-b").update(up=False, silent_at=timezone.now())
    for _ in range(2):  # also another control process
        RuleKeeper(context).look()
        RuleKeeper(context).look()
    [alarm] = Alarm.objects.all()
    assert (alarm.node, alarm.severity, alarm.message) == ("edge-b", "critical", "edge-b does not answer.")
    Node.objects.filter(name="edge-b").update(up=True, silent_at=None)
    RuleKeeper(context).look()
    assert Alarm.objects.filter(cleared_at=None).count() == 0
    # A rule that is gone leaves no alarm.
    Node.objects.filter(name="edge-b").update(up=False, silent_at=timezone.now())
    RuleKeeper(context).look()
    rules = {each["name"]: each for each in operator.get("/alarms/rules").json()}
    assert rules["silent"]["open"] == 1
    assert operator.delete(f"/alarms/rules/{rules['silent']['id']}").status_code == 204
    RuleKeeper(context).look()
    assert Alarm.objects.filter(cleared_at=None).count() == 0
    assert Pipeline.objects.count() == 1


def test_each_metric_raises_an_alarm_through_the_keeper(
    deployment: Deployment, nodes: dict[str, Node]
) -> None:
    """All of power is wrong that may be at once. archive has failed, readings has too many rows, edge-b is
    silent, edge-a is full and busy."""
    of = {"element_failed": "archive", "rate_high": "readings"}
    limits = {"rate_low": 10, "rate_high": 1000, "lag_rows": 100, "latency_ms": 500, "no_rows_s": 60}
    limits |= {"spool_percent": 50, "disk_percent": 90, "cpu_percent": 90, "memory_percent": 90}
    for metric, kind in KINDS.items():
        where = {"pipeline": PIPELINE, "element": of.get(metric, "power")} if kind.of == "element" else {}
        Rule.objects.create(name=metric, rule={"metric": metric, "raise_at": limits.get(metric, 0), **where})
    context: Any = SimpleNamespace(closing=threading.Event())
    keeper = RuleKeeper(context)
    keeper.look()
    assert Alarm.objects.count() == 0

    now_ms = int(time.time() * 1000)
    connector = ConnectorStatus(element="power", state="failing", spool_bytes=SPOOL_BYTES_MAX * 3 // 4)
    power = report(
        deployment,
        "power",
        nodes["cloud"],
        lag_rows=500,
        latency_ms_p95=900.0,
        owner_since_ms=now_ms - 3_600_000,
        dead_letters_total=3,
        connectors=(connector,),
    )
    Replica.objects.filter(pk=power.pk).update(rates={"rows_in_per_s": 5.0, "rows_out_per_s": 1.0})
    away = {"why": "Nobody listens at 10.0.0.1:1883.", "since": timezone.now()}
    ConnectorTrouble.objects.create(deployment=deployment, element="power", **away)
    ConnectorGaps.objects.create(
        deployment=deployment, element="power", node="cloud", counter="c", times=2, rows=30
    )
    report(deployment, "archive", nodes["cloud"], error=ReplicaError.of("disk-full", "The disk is full.", 1))
    rates = {"rows_in_per_s": 5000.0, "rows_out_per_s": 5000.0}
    Replica.objects.filter(group="readings").update(rates=rates)
    load = {"disk_ratio": 0.95, "cpu_ratio": 0.95, "memory_ratio": 0.95}
    Node.objects.filter(name="edge-a").update(load=load)
    Node.objects.filter(name="edge-b").update(up=False, silent_at=timezone.now())
    keeper.look()
    said = {alarm.rule.name: alarm.message for alarm in Alarm.objects.select_related("rule") if alarm.rule}
    title = f"power of {deployment.pipeline.title}"
    assert said.pop("no_rows_s").startswith(f"{title} has had no rows for 3,60")
    assert said == {
        "lag_rows": f"500 rows wait for {title} (more than 100).",
        "latency_ms": f"Rows take 900 ms through {title} (more than 500 ms).",
        "rate_low": f"{title} has 5 rows/s (fewer than 10).",
        "rate_high": f"readings of {deployment.pipeline.title} has 5,000 rows/s (more than 1,000).",
        "element_failed": f"archive of {deployment.pipeline.title} has failed. The disk is full.",
        "connector_failing": f"The connector of {title} fails. Nobody listens at 10.0.0.1:1883.",
        "rows_lost": f"The connector of {title} has lost rows. Gaps so far: 2, with 30 rows or more.",
        "spool_percent": f"The disk buffer of {title} is 75 % full (more than 50 %): Kafka does not take its "
        "rows.",
        "dead_letters": f"3 rows of {title} are dead letters (more than 0).",
        "node_silent": "edge-b does not answer.",
        "disk_percent": "The disk of edge-a is 95 % full (more than 90 %).",
        "cpu_percent": "The CPU of edge-a is 95 % busy (more than 90 %).",
        "memory_percent": "The memory of edge-a is 95 % full (more than 90 %).",
    }


def test_of_two_sources_in_one_group_the_silent_one_has_no_rows(
    deployment: Deployment, nodes: dict[str, Node]
) -> None:
    now_ms = int(time.time() * 1000)
    elements = {
        "variation": ElementRows(rows_in_total=5, last_row_at_ms=now_ms),
        "alerts": ElementRows(rows_in_total=5, last_row_at_ms=now_ms - 3_600_000),
    }
    report(deployment, "watch", nodes["edge-b"], last_row_at_ms=now_ms, elements=elements)
    Rule.objects.create(name="none", rule={"metric": "no_rows_s", "raise_at": 60})
    context: Any = SimpleNamespace(closing=threading.Event())
    RuleKeeper(context).look()
    assert [alarm.element for alarm in Alarm.objects.all()] == ["alerts"]
