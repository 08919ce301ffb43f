"""Each alarm reaches its person by real mail and by a real webhook, through kills of control and web; what
comes twice is known by its id and counted, and without a fault nothing does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.pipelines.conftest import Steady
from tests.integration.pipelines.driving import API, Event, create_topic, deploy
from tests.integration.pipelines.statistics import kill_process
from tests.receivers import Hooks, Mailbox, mail_server, webhook_receiver
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(900)]

PER_S = 4.0
ARRIVES_S = 120.0
KILLS = ("control", "web", "control", "control")


def hot(n: int) -> Event:
    """Each machine becomes too hot once."""
    return f"m{n}", {"machine": f"m{n}", "t": 90.0 + n}


def document(topic: str) -> dict[str, Any]:
    columns = [{"name": "machine", "type": "string"}, {"name": "t", "type": "number"}]
    read = {"topic": topic, "start": "earliest", "key": "machine", "columns": columns}
    limits = {"column": "t", "raise_at": 80, "clear_at": 70}
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "heat"},
        "spec": {
            "elements": [
                {"id": "machines", "type": "kafka-in", "params": read},
                {"id": "hot", "type": "hysteresis-alarm", "params": limits, "inputs": {"in": "machines"}},
            ]
        },
    }


def told(box: Mailbox, hooks: Hooks) -> tuple[set[str], set[str]]:
    """The machines that mails and webhooks told of."""
    by_mail = {
        word.strip(",:")
        for mail in box.mails
        for word in str(mail.get_payload(decode=True), "utf-8").split()  # type: ignore[arg-type]
        if word.startswith("m") and word.strip(",:")[1:].isdigit()
    }
    return by_mail, {each["key"] for _, hook in hooks.requests for each in hook["alarms"]}


def all_arrive(box: Mailbox, hooks: Hooks, events: list[Event]) -> None:
    wanted = {key for key, _ in events}
    wait_until(
        lambda: all(found >= wanted for found in told(box, hooks)),
        "each alarm to reach its person",
        ARRIVES_S,
    )


def set_up(client: httpx.Client, box: Mailbox, hooks: Hooks) -> None:
    urls = {
        "mail": f"mailto://127.0.0.1:{box.port}?from=fogline@example.org&to=ann@example.org",
        "hook": f"json://127.0.0.1:{hooks.port}/alarms",
    }
    channels = []
    for name, url in urls.items():
        made = client.post(f"{API}/alarms/channels", json={"name": name, "url": url})
        channels.append(made.raise_for_status().json()["id"])
    # Ten alarms at most are one message, so that a mail tells of each of its alarms.
    spec = {"channels": channels, "wait_s": 1, "severity": "info", "repeat_min": 0}
    client.post(f"{API}/alarms/routes", json={"name": "all", "spec": spec}).raise_for_status()


def test_each_alarm_reaches_its_person_whatever_is_killed(tmp_path: Path, steady: Steady) -> None:
    with (
        mail_server() as box,
        webhook_receiver() as hooks,
        RunningFogline(tmp_path / "data", ("edge-a",)) as fogline,
        fogline.client() as client,
    ):
        set_up(client, box, hooks)
        create_topic(fogline.bootstrap, "heat-in")
        deploy(client, document("heat-in"))
        calm = steady(fogline.bootstrap, "heat-in", hot, PER_S)
        events = calm.finish(20)
        all_arrive(box, hooks, events)
        assert repeats(box, hooks) == 0
        assert log(client)["repeats"] == 0

        before = len(events)
        producer = steady(fogline.bootstrap, "heat-in", lambda n: hot(before + n), PER_S)
        for name in KILLS:
            sent, mails = len(producer.sent), len(box.mails)
            wait_until(lambda n=sent: len(producer.sent) > n + 20, "more alarms", ARRIVES_S)  # type: ignore[misc]
            kill_process(fogline, name)
            if name == "control":
                wait_until(lambda n=mails: len(box.mails) > n, "mails after the kill", ARRIVES_S)  # type: ignore[misc]
        wait_until(lambda: client.get(f"{API}/me").is_success, "the web", ARRIVES_S)
        # The receivers are away, too, and one answers nothing.
        box.refuse, hooks.answers = "451 busy", [503, 0, 0]
        sent = len(producer.sent)
        wait_until(lambda: len(producer.sent) > sent + 20, "alarms while nobody takes them", ARRIVES_S)
        box.refuse = None
        events += producer.finish(0)
        all_arrive(box, hooks, events)
        wait_until(lambda: log(client)["waiting"] == 0, "the outbox to be empty", ARRIVES_S)
        assert log(client)["repeats"] >= repeats(box, hooks) >= 2
        alarms = open_alarms(client)
        assert {alarm["key"] for alarm in alarms} == {key for key, _ in events}
        assert {alarm["count"] for alarm in alarms} == {1}


def repeats(box: Mailbox, hooks: Hooks) -> int:
    """How many messages came to the receivers once more than once; a refused one did not come."""
    ids = Counter([str(mail["Message-ID"]) for mail in box.mails] + hooks.taken)
    return sum(ids.values()) - len(ids)


def log(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{API}/alarms/messages?limit=500").raise_for_status().json()
    return found


def open_alarms(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{API}/alarms?limit=500").raise_for_status().json()["alarms"]
    return found
