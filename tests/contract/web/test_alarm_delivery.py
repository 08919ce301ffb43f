"""Messages about alarms: each comes at least once, by real mail and real webhooks, and a repeat is known by
its id."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from pipeline_runtime.sealing import opened
from tests.contract.web.conftest import Caller, report
from tests.receivers import Hooks, Mailbox, mail_server, webhook_receiver
from webapp.alarms import outbox
from webapp.alarms.models import Alarm, Channel, Message, Route, Rule, Told
from webapp.alarms.sealed import PURPOSE
from webapp.alarms.state import Clear, Happening, Raise, Severity
from webapp.alarms.taking import About, Step, take
from webapp.audit.models import AuditRecord
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement
from workers.control.alarms import sender
from workers.control.alarms.keeper import RuleKeeper
from workers.control.alarms.sender import deliver, due_messages

Call = Callable[[str | None], Caller]
PAGE = "https://fogline.example.org"


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with mail_server() as found:
        yield found


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with webhook_receiver() as found:
        yield found


def happens(title: str, happening: Happening, **about: Any) -> None:
    with transaction.atomic():
        take([Step(About(Alarm.Source.ROWS, title, **{"element": title} | about), happening)])


def raised(title: str, severity: Severity = "warning", at: datetime | None = None, **about: Any) -> None:
    happens(title, Raise(at or timezone.now(), severity, f"{title} is hot", {"t": 81.5}), **about)


class Delivery:
    """Two channels, a route to both, and the sender's attempts, one after another."""

    def __init__(self, caller: Call, box: Mailbox, hooks: Hooks, secret_key: str) -> None:
        self.admin, self._secret = caller("admin"), secret_key
        mail = (
            f"mailto://secretuser:secretpass@127.0.0.1:{box.port}?from=fogline@example.org&to=ann@example.org"
        )
        hook = f"json://127.0.0.1:{hooks.port}/secretpath?+x-token=secrettoken"
        self.mail = self.channel("mail", mail.replace("secretuser:secretpass@", ""))
        self.hook = self.channel("hook", hook)
        self.route([self.mail, self.hook])

    def channel(self, name: str, url: str) -> int:
        answer = self.admin.post("/alarms/channels", {"name": name, "url": url})
        assert answer.status_code == 201, answer.content
        return int(answer.json()["id"])

    def route(self, channels: list[int], name: str = "all", **spec: Any) -> None:
        body = {"name": name, "spec": {"channels": channels, "wait_s": 0, **spec}}
        answer = self.admin.post("/alarms/routes", body)
        assert answer.status_code == 201, answer.content

    def attempts(self) -> None:
        """Makes the next attempt of each channel, whenever it is due."""
        Message.objects.filter(sent_at=None).update(due_at=timezone.now() - timedelta(seconds=1))
        for id in due_messages().values():
            deliver(id, self._secret, PAGE)


@pytest.fixture
def delivery(caller: Call, box: Mailbox, hooks: Hooks, settings: Any) -> Delivery:
    return Delivery(caller, box, hooks, settings.FOGLINE.secret_key)


def test_alarms_of_one_moment_are_one_message_and_no_secret_is_told(
    delivery: Delivery, box: Mailbox, hooks: Hooks, settings: Any
) -> None:
    for n in range(30):
        raised(f"Pump {n}", "critical" if n == 7 else "warning", key=f"m{n}", site="hall")
    assert Message.objects.count() == 2
    delivery.attempts()
    [mail], [(headers, hook)] = box.mails, hooks.requests
    assert box.subjects == ["[Fogline] critical: Pump 7 is hot (and 29 more)"]
    assert (mail["To"], mail["From"]) == ("ann@example.org", "Fogline <fogline@example.org>")
    text = str(mail.get_payload(decode=True), "utf-8")  # type: ignore[arg-type]
    for part in (
        "CRITICAL: Pump 7 is hot",
        "Where: Pump 7, key m7, site hall",
        "Since: ",
        "t 81.5",
        f"{PAGE}/alarms/",
    ):
        assert part in text
    assert text.count("\n- warning: Pump ") == 10
    ids = {str(each.pk) for each in Message.objects.all()}
    assert {str(mail["Message-ID"]), f"<{headers['idempotency-key']}@example.org>"} == {
        f"<{id}@example.org>" for id in ids
    }
    assert (hook["id"], hook["count"], len(hook["alarms"])) == (headers["idempotency-key"], 30, 30)
    assert headers["x-token"] == "secrettoken"
    # Whoever reads the database, the answers or the audit log does not learn how to send.
    sealed = Channel.objects.get(name="hook").url
    assert "secrettoken" in opened(sealed, settings.FOGLINE.secret_key, PURPOSE)
    shown = [
        delivery.admin.get(f"/alarms/{each}").content.decode() for each in ("channels", "routes", "messages")
    ]
    told = json.dumps([shown, sealed, [each.detail for each in AuditRecord.objects.all()]])
    assert "secret" not in told
    # A further alarm is a message of its own, and nothing is sent twice.
    delivery.attempts()
    raised("Fan")
    delivery.attempts()
    assert (len(box.mails), len(hooks.requests)) == (2, 2)
    log = delivery.admin.get("/alarms/messages").json()
    assert (log["waiting"], log["repeats"], {each["attempts"] for each in log["messages"]}) == (0, 0, {1})


def test_it_is_sent_until_it_is_taken_and_only_what_may_have_come_counts_as_a_repeat(
    delivery: Delivery, box: Mailbox, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.refuse, hooks.answers = "451 busy", [503, 0, 200]
    raised("Pump")
    for _ in range(2):
        delivery.attempts()
    assert box.mails == []
    channel = delivery.admin.get("/alarms/channels").json()[1]
    assert (channel["name"], channel["failing_since"] is not None) == ("mail", True)
    assert channel["error"] == "The mail server refused the message: 451 busy"
    box.refuse = None
    delivery.attempts()
    by_channel = {each.channel.name: each for each in Message.objects.all()}
    mail, hook = by_channel["mail"], by_channel["hook"]
    # Refused: it did not come. The connection that was closed: nobody knows.
    assert (mail.attempts, mail.repeats, hook.attempts, hook.repeats) == (3, 0, 3, 1)
    assert hooks.keys == [str(hook.pk)] * 3
    assert not Channel.objects.exclude(failing_since=None).exists()

    # Control dies after it was sent and before that is stored: it comes again, with the same id.
    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    raised("Fan")
    with monkeypatch.context() as patched:
        patched.setattr(sender, "_sent", dies)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                delivery.attempts()
    delivery.attempts()
    delivery.attempts()
    keys, mails = hooks.keys[3:], [str(each["Message-ID"]) for each in box.mails[1:]]
    assert len(set(keys)) == len(set(mails)) == 1
    assert sum(each.repeats for each in Message.objects.filter(alarms__title="Fan")) == len(keys + mails) - 2
    assert Message.objects.filter(sent_at=None).count() == 0


def test_who_is_told_and_when(delivery: Delivery, box: Mailbox, hooks: Hooks) -> None:
    Route.objects.all().delete()
    delivery.route(
        [delivery.mail],
        "first",
        severity="critical",
        repeat_min=30,
        escalate_min=10,
        **{
            "escalate_to": [delivery.hook],
            "sites": ["hall"],
        },
    )
    raised("Elsewhere", "critical", site="cloud")
    raised("Small", "warning", site="hall")
    raised("Pump", "critical", site="hall")
    delivery.attempts()
    assert (box.subjects, hooks.requests) == (["[Fogline] critical: Pump is hot"], [])

    def pass_minutes(n: int) -> None:
        for told in Told.objects.all():
            told.first_at -= timedelta(minutes=n)
            told.last_at -= timedelta(minutes=n)
            told.save()
        outbox.plan()
        outbox.plan()
        delivery.attempts()

    pass_minutes(11)
    assert [hook["subject"] for _, hook in hooks.requests] == [
        "[Fogline] not acknowledged yet: critical: Pump is hot"
    ]
    pass_minutes(20)
    assert box.subjects[1:] == ["[Fogline] still critical: Pump is hot"]
    alarm = Alarm.objects.get(title="Pump")
    assert delivery.admin.post(f"/alarms/{alarm.pk}/acknowledge", {}).status_code == 200
    pass_minutes(100)
    assert (len(box.mails), len(hooks.requests)) == (2, 1)
    # Those who were told are told of the end.
    happens("Pump", Clear(timezone.now()), site="hall")
    happens("Small", Clear(timezone.now()), site="hall")
    delivery.attempts()
    assert box.subjects[2:] == ["[Fogline] cleared: Pump is hot"]
    assert len(hooks.requests) == 2


def test_one_that_got_worse_while_nobody_was_on_call_is_told_later(delivery: Delivery, box: Mailbox) -> None:
    Route.objects.all().delete()
    delivery.route([delivery.mail], "days", repeat_min=0)
    raised("Pump")
    other_day = (timezone.now().weekday() + 3) % 7
    of = Route.objects.get()
    Route.objects.update(spec=of.spec | {"on_call": [{"days": [other_day]}]})
    raised("Pump", "critical")
    outbox.plan()
    delivery.attempts()
    assert len(box.mails) == 1
    Route.objects.update(spec=of.spec)
    outbox.plan()
    outbox.plan()
    delivery.attempts()
    assert box.subjects[1:] == ["[Fogline] critical: Pump is hot"]


def test_one_that_gets_worse_while_it_is_silenced_is_told(delivery: Delivery, box: Mailbox) -> None:
    raised("Pump")
    delivery.attempts()
    alarm = Alarm.objects.get()
    silence = {"note": "known", "until": (timezone.now() + timedelta(hours=1)).isoformat()}
    assert delivery.admin.post(f"/alarms/{alarm.pk}/silence", silence).status_code == 200
    raised("Pump")
    outbox.plan()
    delivery.attempts()
    assert box.subjects == ["[Fogline] warning: Pump is hot"]
    raised("Pump", "critical")
    delivery.attempts()
    assert box.subjects[1:] == ["[Fogline] critical: Pump is hot"]
    shown = delivery.admin.get(f"/alarms/{alarm.pk}").json()
    assert (shown["status"], shown["silenced_by"]) == ("raised", None)
    assert [each["kind"] for each in shown["changes"]] == ["raised", "silenced", "worse"]
    # Whoever silences it now knows how serious it is.
    assert delivery.admin.post(f"/alarms/{alarm.pk}/silence", silence).status_code == 200
    happens("Pump", Clear(timezone.now()))
    raised("Pump", "critical")
    outbox.plan()
    delivery.attempts()
    assert len(box.mails) == 2


def test_a_channel_that_fails_for_long_is_an_alarm_by_another_one(
    delivery: Delivery, box: Mailbox, hooks: Hooks
) -> None:
    box.refuse = "550 no"
    raised("Pump")
    delivery.attempts()
    Channel.objects.filter(name="mail").update(failing_since=timezone.now() - timedelta(minutes=6))
    delivery.attempts()
    delivery.attempts()
    [alarm] = Alarm.objects.filter(source="channel")
    assert alarm.cleared_at is None
    assert "The mail server refused the message: 550 no" in alarm.message
    said = [hook["alarms"][0]["title"] for _, hook in hooks.requests]
    assert said == ["Pump", "Channel mail"]
    assert not Message.objects.filter(channel__name="mail", alarms=alarm).exists()
    # An admin mends the URL, which is no sign that it works; the next message is.
    url = f"mailto://127.0.0.1:{box.port}?from=fogline@example.org&to=ben@example.org"
    assert delivery.admin.call("PATCH", f"/alarms/channels/{delivery.mail}", {"url": url}).status_code == 200
    box.refuse = None
    delivery.attempts()
    assert Alarm.objects.filter(source="channel", cleared_at=None).count() == 0


def test_a_route_that_has_nothing_told_of_a_node_tells_of_its_elements(
    delivery: Delivery, box: Mailbox, hooks: Hooks
) -> None:
    delivery.route([delivery.mail], "critical", severity="critical")
    Route.objects.filter(name="all").delete()
    rule = Rule.objects.create(name="silent", rule={"metric": "node_silent"})
    with transaction.atomic():
        about = About(Alarm.Source.RULE, "edge-b", node="edge-b", rule=rule)
        take([Step(about, Raise(timezone.now(), "warning", "edge-b does not answer."))])
    raised("Pump\r\nBcc: x", "critical", element="pump", pipeline="p", node="edge-b")
    delivery.attempts()
    assert box.subjects == ["[Fogline] critical: Pump Bcc: x is hot"]
    # Nobody is told while all channels are off; somebody is when one is on again.
    Channel.objects.update(enabled=False)
    raised("Fan", "critical", element="fan", pipeline="p", node="edge-a")
    outbox.plan()
    assert not Told.objects.filter(alarm__title="Fan").exists()
    Channel.objects.update(enabled=True)
    outbox.plan()
    delivery.attempts()
    assert box.subjects[1:] == ["[Fogline] critical: Fan is hot"]


def test_a_node_that_dies_is_one_message(delivery: Delivery, box: Mailbox, deployment: Deployment) -> None:
    """The rows of its elements wait at once, and the rule about silent nodes waits for minutes: on a slow
    machine the test itself takes seconds."""
    silent = {"metric": "node_silent", "severity": "critical", "for_s": 240}
    Rule.objects.create(name="silent", rule=silent)
    Rule.objects.create(name="lag", rule={"metric": "lag_rows", "raise_at": 1000})
    context: Any = SimpleNamespace(closing=threading.Event())
    keeper = RuleKeeper(context)

    def pass_s(seconds: int) -> None:
        """The keeper looks before and after that time, and what is due is sent each time."""
        for passed_s in (0, seconds):
            keeper._since_s = {each: since_s - passed_s for each, since_s in keeper._since_s.items()}
            Node.objects.exclude(silent_at=None).update(
                silent_at=F("silent_at") - timedelta(seconds=passed_s)
            )
            keeper.look()
            outbox.plan()
            delivery.attempts()

    pass_s(240)
    assert box.subjects == []
    # Its alarms wait for the one about the node, those of other nodes do not.
    Node.objects.filter(name="edge-b").update(up=False, silent_at=timezone.now())
    GroupPlacement.objects.filter(node__name="edge-b").update(backlog_rows=5_000)
    raised("Other", element="o", pipeline="p", node="edge-a")
    pass_s(120)
    elements = {each.element for each in Alarm.objects.filter(node="edge-b")}
    assert elements == {"variation", "alerts"}
    assert box.subjects == ["[Fogline] warning: Other is hot"]
    pass_s(120)
    pass_s(60)
    assert box.subjects[1:] == ["[Fogline] critical: edge-b does not answer."]
    # What is still wrong when the node is back is told.
    Node.objects.filter(name="edge-b").update(up=True, silent_at=None)
    for group in GroupPlacement.objects.filter(node__name="edge-b").values_list("group", flat=True):
        report(deployment, group, Node.objects.get(name="edge-b"), lag_rows=5_000)
    pass_s(1)
    assert [subject.partition(": ")[0] for subject in box.subjects[2:]] == ["[Fogline] warning"]
    assert "and 2 more" in box.subjects[2]

    # They do not wait for long, however long the rule about the node does.
    Rule.objects.filter(name="silent").update(rule=silent | {"for_s": 3600})
    Alarm.objects.all().delete()
    Node.objects.filter(name="edge-b").update(up=False, silent_at=timezone.now())
    pass_s(20)
    assert len(box.subjects) == 3
    pass_s(700)
    assert "rows wait for" in box.subjects[3]


def test_a_test_message_comes_by_the_channel_alone(delivery: Delivery, box: Mailbox, hooks: Hooks) -> None:
    path = f"/alarms/channels/{delivery.mail}"
    assert delivery.admin.post(f"{path}/test").status_code == 202
    assert delivery.admin.post(f"{path}/test").status_code == 429
    assert delivery.admin.delete(path).status_code == 409  # a route uses it
    delivery.attempts()
    assert (box.subjects, hooks.requests) == (["[Fogline] Test message"], [])
