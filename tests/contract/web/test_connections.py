"""Connections over REST: made, changed, removed and tested. No answer holds their secrets."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.conf import settings
from django.db import connection as database

from pipeline_runtime.model.connectors import PURPOSE_SENT, Found, FoundPart, Offer, TestAnswer, TestQuestion
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.sealing import opened
from pipeline_runtime.wire.keys import node_answer
from pipeline_runtime.wire.tasks import NODE_TEST
from tests.contract.web.asked_node import asked_node
from tests.contract.web.conftest import audited
from tests.contract.web.test_permissions import assert_problem
from webapp.audit.models import AuditRecord, Event
from webapp.connections.models import Connection
from webapp.connections.selectors import named_in, sent, sent_of
from webapp.pipelines.checking import check, connection_faults
from webapp.placements.models import Deployment

SECRET = "hunter2-is-secret"
FIELDS = {"host": "broker.plant", "user": "ann", "password": SECRET}
Call = Callable[[str | None], Any]

pytestmark = pytest.mark.django_db


def made(caller: Call, name: str = "plant") -> dict[str, Any]:
    answer = caller("admin").post("/connections", {"name": name, "kind": "mqtt", "fields": FIELDS})
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def own(client: Any) -> list[dict[str, Any]]:
    """The connections that people made."""
    return [each for each in client.get("/connections").json() if not each["simulated"]]


def test_a_connection_is_made_changed_and_removed_and_nothing_tells_its_secret(caller: Call) -> None:
    answers = [made(caller)]
    assert answers[0]["secrets"] == ["password"]
    assert answers[0]["fields"]["port"] == 1883
    changed = caller("admin").put("/connections/plant", {"fields": {"host": "other.plant", "user": "ann"}})
    assert changed.json()["secrets"] == ["password"], "a secret that is not named stays"
    answers += [changed.json(), caller("admin").get("/connections").json()]
    told = sent(Connection.objects.get(pk="plant"))
    fields = json.loads(opened(told.sealed, settings.FOGLINE.cluster_key, PURPOSE_SENT))
    assert (fields["host"], fields["password"]) == ("other.plant", SECRET)
    refused = caller("admin").put("/connections/plant", {"fields": {"host": "a b", "password": SECRET}})
    answers.append(assert_problem(refused, 422))
    gone = caller("admin").put("/connections/plant", {"fields": {"host": "h", "password": None}})
    assert gone.json()["secrets"] == []
    assert caller("admin").delete("/connections/plant").status_code == 204
    assert [audited(f"connection.{each}") for each in ("create", "change", "delete")] == [1, 2, 1]
    answers += [AuditRecord.objects.values_list("target", "detail"), Event.objects.values_list("message")]
    assert SECRET not in str([str(each) for each in answers])


def test_the_database_holds_no_secret_in_the_clear(caller: Call) -> None:
    made(caller)
    with database.cursor() as cursor:
        cursor.execute("SELECT * FROM connections_connection")
        assert SECRET not in str(cursor.fetchall())


def test_others_than_admins_see_the_name_and_the_kind_alone(caller: Call) -> None:
    made(caller)
    [seen] = own(caller("editor"))
    assert (seen["name"], seen["title"], seen["fields"], seen["secrets"]) == (
        "plant",
        "MQTT broker",
        None,
        [],
    )


def test_a_connection_that_is_used_or_doubled_or_odd_is_refused_in_words(caller: Call) -> None:
    made(caller)
    again = {"name": "plant", "kind": "mqtt", "fields": FIELDS}
    assert_problem(caller("admin").post("/connections", again), 409)
    for odd in ("Plant!", "other\n"):
        assert_problem(caller("admin").post("/connections", {**again, "name": odd}), 422)
    assert_problem(caller("admin").post("/connections", {**again, "name": "x", "kind": "teleport"}), 422)
    assert_problem(caller("admin").delete("/connections/nowhere"), 404)


def test_secrets_of_another_key_are_entered_again_and_the_other_connections_are_seen(
    caller: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(caller)
    other = settings.FOGLINE.model_copy(update={"secret_key": "another"})
    monkeypatch.setattr(settings, "FOGLINE", other)
    [seen] = own(caller("admin"))
    assert (seen["secrets"], seen["secrets_lost"]) == ([], True)
    assert sent(Connection.objects.get(pk="plant")).sealed == ""
    assert_problem(caller("admin").put("/connections/plant", {"fields": {"host": "h"}}), 409)
    fields = {"host": "h", "password": SECRET, "private_key": None}
    changed = caller("admin").put("/connections/plant", {"fields": fields}).json()
    assert (changed["secrets"], changed["secrets_lost"]) == (["password"], False)


def test_a_document_that_names_a_connection_which_is_not_there_has_a_fault(caller: Call) -> None:
    made(caller)
    elements = [
        {"id": "a", "type": "mqtt-in", "params": {"connection": "plant"}},
        {"id": "b", "type": "mqtt-out", "params": {"connection": "other"}},
    ]
    [fault] = connection_faults({"spec": {"elements": elements}})
    assert (fault.element, fault.path) == ("b", "spec.elements[1].params.connection")
    assert 'there is no connection "other"' in fault.message


REGISTRY = {"url": "https://registry.plant:8081", "user": "ann", "password": SECRET}


def test_an_element_names_a_connection_in_each_parameter_that_asks_for_one(caller: Call) -> None:
    for name, kind, fields in (
        ("cluster", "kafka", {"servers": "a:9092"}),
        ("plant-registry", "schema-registry", REGISTRY),
    ):
        made = caller("admin").post("/connections", {"name": name, "kind": kind, "fields": fields})
        assert made.status_code == 201, made.content
        assert SECRET not in made.content.decode()
    params = {"connection": "cluster", "topic": "t", "format": "avro", "registry": "plant-registry"}
    element = {"id": "in", "type": "other-kafka-in", "params": params}
    assert connection_faults({"spec": {"elements": [element]}}) == []
    assert {each.name for each in named_in([element])} == {"cluster", "plant-registry"}
    swapped = {**element, "params": {**params, "registry": "cluster"}}
    [fault] = connection_faults({"spec": {"elements": [swapped]}})
    assert fault.path == "spec.elements[0].params.registry"
    assert "one of the kind schema-registry is needed" in fault.message


def test_a_registry_by_its_address_is_refused() -> None:
    params = {"topic": "t", "columns": [{"name": "n"}], "format": "avro", "registry": REGISTRY["url"]}
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "p"},
        "spec": {"elements": [{"id": "in", "type": "kafka-in", "params": params}]},
    }
    [fault] = [each for each in check(document).faults if each.path.endswith("registry")]
    assert "a connection's name consists of" in fault.message
    assert "it is no address" in fault.message


def test_a_test_runs_on_the_node_and_shows_the_first_rows(
    caller: Call, deployment: Deployment, real_redis: redis.Redis
) -> None:
    made(caller)

    offer = Offer(field="server_certificate", value="pem", title="Accept this certificate")

    def answer(question: dict[str, Any]) -> None:
        part = FoundPart(name="t", type=FieldType.NUMBER)
        found = Found(path="plant/a", title="plant/a", type="JSON object", usable=True, parts=(part,))
        said = TestAnswer(works=True, words="Connected.", rows=({"topic": "a"},), found=(found,), offer=offer)
        real_redis.rpush(node_answer(question["id"]), said.model_dump_json())

    with asked_node(real_redis, NODE_TEST, TestQuestion, answer, "edge-a") as asked:
        body = {"node": "edge-a", "find": "plant"}
        tested = caller("operator").post("/connections/plant/test", body)
    assert tested.json()["rows"] == [{"topic": "a"}], tested.content
    assert tested.json()["offer"] == offer.model_dump()
    [question] = asked
    assert question.find == "plant"
    assert SECRET not in question.sealed
    fields = json.loads(opened(question.sealed, settings.FOGLINE.cluster_key, PURPOSE_SENT))
    assert fields["password"] == SECRET
    # What was found can be ticked as it came.
    ticked = {"params": {"connection": "plant"}, "ticked": tested.json()["found"]}
    taken = caller("editor").post("/operators/mqtt-in/taken", ticked)
    assert taken.json()["params"]["columns"] == [{"name": "t", "type": "number"}], taken.content
    assert_problem(caller("editor").post("/operators/filter/taken", ticked), 404)
    assert_problem(caller("editor").post("/operators/mqtt-in/taken", {**ticked, "ticked": []}), 422)


def test_simulated_machines_have_connections_that_nobody_makes_changes_or_deletes(caller: Call) -> None:
    seen = {each["name"]: each for each in caller("viewer").get("/connections").json()}
    assert {name: (each["kind"], each["simulated"]) for name, each in seen.items()} == {
        "simulated-press": ("opcua", True),
        "simulated-pump": ("modbus", True),
    }
    new = {"name": "simulated-press", "kind": "opcua", "fields": {"host": "h"}}
    assert_problem(caller("admin").post("/connections", new), 409)
    assert_problem(caller("admin").put("/connections/simulated-press", {"fields": {"host": "h"}}), 409)
    assert_problem(caller("admin").delete("/connections/simulated-press"), 409)
    [told] = sent_of({"simulated-press", "nowhere"})
    fields = json.loads(opened(told.sealed, settings.FOGLINE.cluster_key, PURPOSE_SENT))
    assert (told.kind, fields) == ("opcua", {"host": "simulated-press"})
    element = {"id": "a", "type": "opcua-in", "params": {"connection": "simulated-press"}}
    assert connection_faults({"spec": {"elements": [element]}}) == []


def test_a_simulated_machine_is_tested_as_any_other(
    caller: Call, deployment: Deployment, real_redis: redis.Redis
) -> None:
    def answer(question: dict[str, Any]) -> None:
        real_redis.rpush(node_answer(question["id"]), TestAnswer(works=True, words="").model_dump_json())

    with asked_node(real_redis, NODE_TEST, TestQuestion, answer, "edge-a") as asked:
        caller("operator").post("/connections/simulated-pump/test", {"node": "edge-a"})
    fields = json.loads(opened(asked[0].sealed, settings.FOGLINE.cluster_key, PURPOSE_SENT))
    assert (asked[0].kind, fields["host"]) == ("modbus", "simulated-pump")
