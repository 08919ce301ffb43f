"""Drafts, versions, deployment, pause."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from pipeline_runtime.model.document import parse_document
from tests.contract.web.conftest import PIPELINE, Caller, audited
from tests.contract.web.test_permissions import assert_problem
from webapp.accounts.models import User
from webapp.audit.models import AuditRecord
from webapp.handovers.facts import group_id
from webapp.nodes.models import GivenLatency, Node
from webapp.operations.models import Operation
from webapp.pipelines.checking import planned
from webapp.placements.models import Deployment

P = f"/pipelines/{PIPELINE}"
Call = Callable[[str | None], Caller]
Commands = Callable[[], list[tuple[str, list[Any]]]]


def changed(document: dict[str, Any], title: str) -> dict[str, Any]:
    other = deepcopy(document)
    other["spec"]["elements"][0]["title"] = title
    return other


# --- drafts -------------------------------------------------------------------------------------
@pytest.mark.usefixtures("pipeline")
def test_a_draft_is_saved_by_its_revision_and_tells_the_next(caller: Call, document: dict[str, Any]) -> None:
    editor = caller("editor")
    tag = editor.get(P).headers["ETag"]
    response = editor.put(P, {"document": changed(document, "one")}, **{"If-Match": tag})
    assert response.status_code == 200
    assert response.headers["ETag"] != tag
    assert editor.get(P).json()["document"]["spec"]["elements"][0]["title"] == "one"
    assert editor.get(P).headers["ETag"] == response.headers["ETag"]
    assert audited("pipeline.save") == 1


@pytest.mark.usefixtures("pipeline")
def test_of_two_who_save_the_second_gets_both_versions_and_nothing_is_lost(
    caller: Call, document: dict[str, Any]
) -> None:
    editor, admin = caller("editor"), caller("admin")
    tag = editor.get(P).headers["ETag"]
    mine, theirs = changed(document, "mine"), changed(document, "theirs")
    assert admin.put(P, {"document": theirs}, **{"If-Match": tag}).status_code == 200
    problem = assert_problem(editor.put(P, {"document": mine}, **{"If-Match": tag}), 409)
    assert problem["yours"] == mine
    assert problem["theirs"] == theirs
    assert "admin-user" in problem["detail"]
    again = {"If-Match": f'"{problem["revision"]}"'}
    assert editor.put(P, {"document": mine}, **again).status_code == 200


@pytest.mark.usefixtures("pipeline")
def test_saving_what_is_saved_changes_no_revision(caller: Call, document: dict[str, Any]) -> None:
    editor = caller("editor")
    tag = editor.get(P).headers["ETag"]
    assert editor.put(P, {"document": document}, **{"If-Match": tag}).headers["ETag"] == tag
    assert audited("pipeline.save") == 0


@pytest.mark.usefixtures("pipeline")
@pytest.mark.parametrize(
    "draft",
    [
        {},
        {"metadata": {"name": "another"}, "spec": {"elements": []}},
        {"metadata": {"name": PIPELINE}, "spec": {"elements": "x"}},
        {"metadata": {"name": PIPELINE}, "spec": {"elements": [1]}},
    ],
)
def test_what_the_editor_could_not_open_again_is_not_saved(caller: Call, draft: dict[str, Any]) -> None:
    editor = caller("editor")
    tag = editor.get(P).headers["ETag"]
    problem = assert_problem(editor.put(P, {"document": draft}, **{"If-Match": tag}), 422)
    assert problem["faults"]


@pytest.mark.usefixtures("pipeline")
def test_a_draft_with_faults_is_saved_and_validation_names_all_of_them(
    caller: Call, document: dict[str, Any]
) -> None:
    editor = caller("editor")
    broken = deepcopy(document)
    broken["spec"]["elements"][1]["type"] = "teleport"
    broken["spec"]["elements"][3]["params"]["size_s"] = "long"
    broken["spec"]["elements"][4]["node"] = "moon"
    tag = editor.get(P).headers["ETag"]
    assert editor.put(P, {"document": broken}, **{"If-Match": tag}).status_code == 200
    found = editor.post(f"{P}/validate").json()
    assert {fault["element"] for fault in found["faults"]} >= {"variation", "power", "archive"}
    assert "readings.out" in found["schemas"]
    assert editor.post(f"{P}/validate", {"document": document}).json()["faults"] == []
    problem = assert_problem(editor.post(f"{P}/deploy"), 422)
    assert {fault["element"] for fault in problem["faults"]} >= {"variation", "power", "archive"}
    assert not Deployment.objects.exists()


def test_a_pipeline_is_created_empty_or_from_a_document(caller: Call, document: dict[str, Any]) -> None:
    editor = caller("editor")
    assert editor.post("/pipelines", {"name": "empty"}).json()["document"]["spec"] == {"elements": []}
    response = editor.post("/pipelines", {"name": "copy", "document": document})
    assert response.status_code == 201
    assert response.json()["document"]["metadata"]["name"] == "copy"
    assert editor.post("/pipelines", {"document": document}).json()["name"] == PIPELINE
    assert [item["name"] for item in editor.get("/pipelines").json()] == ["copy", "empty", PIPELINE]
    assert audited("pipeline.create") == 3


def test_a_pipeline_is_called_as_people_like_and_its_name_is_made_of_that(caller: Call) -> None:
    editor = caller("editor")
    made = editor.post("/pipelines", {"title": "Fräsen  Überwachung"}).json()
    assert (made["name"], made["title"]) == ("fraesen-ueberwachung", "Fräsen Überwachung")
    assert made["document"]["metadata"]["title"] == "Fräsen Überwachung"
    assert_problem(editor.post("/pipelines", {"title": "fräsen überwachung"}), 409)
    assert (
        editor.post("/pipelines", {"title": "Fraesen Überwachung"}).json()["name"] == "fraesen-ueberwachung-2"
    )
    assert_problem(editor.post("/pipelines", {"title": "x" * 121}), 422)
    plain = editor.post("/pipelines", {"title": "case-1"}).json()
    assert (plain["title"], "title" in plain["document"]["metadata"]) == ("case-1", False)


@pytest.mark.usefixtures("pipeline")
def test_a_pipeline_that_is_not_deployed_can_be_deleted(caller: Call) -> None:
    assert caller("editor").delete(P).status_code == 204
    assert_problem(caller("editor").get(P), 404)
    # What was drawn can still be read from the audit log.
    assert AuditRecord.objects.get(action="pipeline.delete").detail["document"]["spec"]["elements"]


@pytest.mark.usefixtures("pipeline")
def test_a_new_name_keeps_the_versions(caller: Call, document: dict[str, Any]) -> None:
    editor = caller("editor")
    editor.post(f"{P}/versions", {"note": "first"})
    renamed = editor.post(f"{P}/rename", {"name": "power-2"})
    assert renamed.json()["document"]["metadata"]["name"] == "power-2"
    assert_problem(editor.get(P), 404)
    restored = editor.post("/pipelines/power-2/versions/1/restore").json()["document"]
    assert restored == {**document, "metadata": {**document["metadata"], "name": "power-2"}}
    tag = {"If-Match": editor.get("/pipelines/power-2").headers["ETag"]}
    assert editor.put("/pipelines/power-2", {"document": restored}, **tag).status_code == 200
    assert audited("pipeline.rename") == 1


@pytest.mark.usefixtures("pipeline")
def test_a_name_that_is_taken_or_in_use_is_refused(caller: Call, users: dict[str, User]) -> None:
    editor = caller("editor")
    editor.post("/pipelines", {"name": "other"})
    assert_problem(editor.post(f"{P}/rename", {"name": "other"}), 409)
    assert_problem(editor.post(f"{P}/rename", {"name": "No Name"}), 422)
    assert_problem(caller("operator").post(f"{P}/rename", {"name": "mine"}), 403)
    assert editor.post(f"{P}/deploy").status_code == 202
    assert "is deployed" in assert_problem(editor.post(f"{P}/rename", {"name": "mine"}), 409)["detail"]
    assert editor.get(P).status_code == 200


@pytest.mark.usefixtures("pipeline")
def test_a_draft_that_was_changed_since_it_was_seen_is_not_deployed(
    caller: Call, document: dict[str, Any]
) -> None:
    editor, admin = caller("editor"), caller("admin")
    seen = editor.get(P).json()["revision"]
    tag = {"If-Match": editor.get(P).headers["ETag"]}
    admin.put(P, {"document": changed(document, "theirs")}, **tag)
    problem = assert_problem(editor.post(f"{P}/deploy", {"revision": seen}), 409)
    assert "admin-user" in problem["detail"]
    assert not Deployment.objects.exists()
    assert editor.post(f"{P}/deploy", {"revision": seen + 1}).status_code == 202


# --- versions -----------------------------------------------------------------------------------
@pytest.mark.usefixtures("pipeline")
def test_an_old_version_comes_back_and_the_draft_it_replaces_is_kept(
    caller: Call, document: dict[str, Any]
) -> None:
    editor = caller("editor")
    assert editor.post(f"{P}/versions", {"note": "first"}).json()["number"] == 1
    assert editor.post(f"{P}/versions", {"note": "the same"}).json()["number"] == 1
    tag = editor.get(P).headers["ETag"]
    editor.put(P, {"document": changed(document, "later")}, **{"If-Match": tag})
    difference = editor.get(f"{P}/diff?from=1&to=draft").json()
    assert [item["id"] for item in difference["changed"]] == ["readings"]
    restored = editor.post(f"{P}/versions/1/restore")
    assert restored.json()["document"] == document
    assert restored.headers["ETag"] not in (tag, f'"{int(tag.strip(chr(34))) + 1}"')
    versions = editor.get(f"{P}/versions").json()
    assert [item["number"] for item in versions] == [2, 1]
    kept = editor.get(f"{P}/versions/2").json()["document"]
    assert kept["spec"]["elements"][0]["title"] == "later"


# --- deployment ---------------------------------------------------------------------------------
@pytest.mark.usefixtures("pipeline")
def test_deploying_writes_an_operation_and_tells_the_control_side_its_id_only(
    caller: Call, commands: Commands
) -> None:
    response = caller("editor").post(f"{P}/deploy", {"placement": {"power": "edge-a"}})
    assert response.status_code == 202
    operation = Operation.objects.get()
    assert response.json()["id"] == str(operation.pk)
    assert commands() == [("fogline.control.operation", [str(operation.pk)])]
    deployment = operation.deployment
    assert (deployment.status, deployment.placement) == ("deploying", {"power": "edge-a"})
    assert len(deployment.pk) == 10
    assert deployment.version.number == 1
    assert audited("pipeline.deploy") == 1
    assert caller("viewer").get(f"/operations/{operation.pk}").json()["status"] == "pending"


@pytest.mark.usefixtures("pipeline")
def test_a_pipeline_is_deployed_once_at_a_time(caller: Call, commands: Commands) -> None:
    editor = caller("editor")
    assert editor.post(f"{P}/deploy").status_code == 202
    problem = assert_problem(editor.post(f"{P}/deploy"), 409)
    assert problem["deployment"] == Deployment.objects.get().pk
    assert len(commands()) == 1


def with_params(document: dict[str, Any], element: str, **params: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(document)
    found = next(item for item in made["spec"]["elements"] if item["id"] == element)
    found["params"] |= params
    return made


def save(editor: Caller, document: dict[str, Any]) -> None:
    tag = editor.get(P).headers["ETag"]
    assert editor.put(P, {"document": document}, **{"If-Match": tag}).status_code == 200


def test_what_runs_is_upgraded_in_place_after_saying_what_that_does(
    caller: Call, deployment: Deployment, document: dict[str, Any], commands: Commands
) -> None:
    editor = caller("editor")
    save(editor, with_params(document, "alerts", condition="mf01_average > 50"))
    answer = editor.post(f"{P}/deploy", {"dry_run": True})
    assert answer.status_code == 200
    assert answer.json()["repeats"] is False
    told = {item["element"]: item for item in answer.json()["changes"]}
    assert (told["alerts"]["change"], told["variation"]["change"]) == ("upgraded", "upgraded")
    assert {told[id]["change"] for id in ("readings", "power", "archive", "chart")} == {"unchanged"}
    assert commands() == []
    answer = editor.post(f"{P}/deploy")
    assert answer.status_code == 202
    operation = Operation.objects.get()
    assert operation.kind == "upgrade"
    assert commands() == [("fogline.control.operation", [str(operation.pk)])]
    deployment.refresh_from_db()
    assert (deployment.status, deployment.version.number) == ("running", 2)
    assert audited("pipeline.upgrade") == 1
    save(editor, with_params(document, "alerts", condition="mf01_average > 60"))
    assert "upgraded already" in assert_problem(editor.post(f"{P}/deploy"), 409)["detail"]


def test_elements_come_to_what_runs_and_go_after_saying_what_that_does(
    caller: Call, deployment: Deployment, document: dict[str, Any], commands: Commands
) -> None:
    editor = caller("editor")
    elements = [each for each in document["spec"]["elements"] if each["id"] != "archive"]
    loud = {"id": "loud", "type": "filter", "title": "Loud", "params": {"condition": "mf01 > 5"}}
    elements.append({**loud, "inputs": {"in": "readings"}, "node": "cloud"})
    save(editor, {**document, "spec": {**document["spec"], "elements": elements}})
    told = {item["element"]: item for item in editor.post(f"{P}/deploy", {"dry_run": True}).json()["changes"]}
    came, went = told.pop("loud"), told.pop("archive")
    assert (came["change"], came["title"], came["node"], came["why"]) == ("added", "Loud", "cloud", "pinned")
    assert (went["change"], went["title"]) == ("removed", deployment.name_of("archive"))
    assert {item["change"] for item in told.values()} == {"unchanged"}
    before = deployment.version_id
    assert editor.post(f"{P}/deploy").status_code == 202
    operation = Operation.objects.get()
    assert (operation.kind, operation.replaces_id) == ("upgrade", before)
    assert commands() == [("fogline.control.operation", [str(operation.pk)])]


def test_one_that_others_go_on_from_is_not_taken_out_while_its_node_is_silent(
    caller: Call, deployment: Deployment, document: dict[str, Any]
) -> None:
    """It could not say where it has stopped."""
    editor = caller("editor")
    deployment.placements.filter(group="archive").update(node=Node.objects.get(name="edge-a"))
    elements = [dict(each) for each in document["spec"]["elements"]]
    for each in elements:
        each["id"] = "replaced" if each["id"] == "power" else each["id"]
        if each.get("inputs") == {"in": "power"}:
            each["inputs"] = {"in": "replaced"}
    save(editor, {**document, "spec": {**document["spec"], "elements": elements}})
    told = {item["element"]: item for item in editor.post(f"{P}/deploy", {"dry_run": True}).json()["changes"]}
    assert told["replaced"]["reason"] == "it now reads readings, from the row at which power stops"
    Node.objects.filter(name="cloud").update(up=False)
    problem = assert_problem(editor.post(f"{P}/deploy"), 409)
    assert '"power" cannot be removed: its node cloud does not answer' in problem["detail"]
    assert problem["next"].startswith("Restore it on another node")
    assert not Operation.objects.exists()


def parted(document: dict[str, Any]) -> dict[str, Any]:
    """Each for itself, without pins."""
    elements = [{key: each[key] for key in each if key != "node"} for each in document["spec"]["elements"]]
    return {**document, "spec": {"elements": elements}}


def test_elements_are_grouped_otherwise_after_saying_what_that_does(
    caller: Call, deployment: Deployment, document: dict[str, Any], commands: Commands
) -> None:
    editor, apart = caller("editor"), parted(document)
    together = [{"id": "front", "elements": ["readings", "variation"]}]
    save(editor, {**apart, "spec": {**apart["spec"], "groups": together}})
    told = {item["element"]: item for item in editor.post(f"{P}/deploy", {"dry_run": True}).json()["changes"]}
    assert {id: item["change"] for id, item in told.items()} == {
        "readings": "upgraded",
        "variation": "restart",
        "alerts": "upgraded",
        "power": "unchanged",
        "archive": "unchanged",
        "chart": "unchanged",
    }
    assert "together with readings, and no longer with alerts" in told["variation"]["reason"]
    assert told["variation"]["loses"]
    assert (told["variation"]["node"], told["variation"]["why"]) == (
        "edge-a",
        "with the elements that it runs together with",
    )
    assert "node" not in told["alerts"], "it stays where it is"
    assert "variation loses" in assert_problem(editor.post(f"{P}/deploy"), 409)["next"]
    restart = {"restart": ["variation"]}
    watch = deployment.replicas.get(group="watch")
    failing = {**watch.status, "error": {"message": "It fails.", "safe": "All.", "next": "Mend it."}}
    deployment.replicas.filter(pk=watch.pk).update(status=failing)
    assert "must run again before" in assert_problem(editor.post(f"{P}/deploy", restart), 409)["detail"]
    deployment.replicas.filter(pk=watch.pk).update(status=watch.status)
    deployment.placements.filter(group="watch").update(paused_at=timezone.now())
    assert "is paused" in assert_problem(editor.post(f"{P}/deploy", restart), 409)["detail"]
    deployment.placements.update(paused_at=None)
    Node.objects.filter(name="edge-b").update(up=False)
    assert (
        "cannot be put into other groups"
        in assert_problem(editor.post(f"{P}/deploy", restart), 409)["detail"]
    )
    assert commands() == []
    Node.objects.update(up=True)
    assert editor.post(f"{P}/deploy", restart).status_code == 202
    assert Operation.objects.get().restart == ["variation"]


def test_what_is_being_grouped_otherwise_is_shown_as_it_runs_and_by_the_id_that_it_has_in_the_document(
    caller: Call, deployment: Deployment, document: dict[str, Any]
) -> None:
    viewer = caller("viewer")
    version = deployment.version
    version.document = parted(document)
    version.save()
    alerts = viewer.get(f"{P}/elements/alerts").json()
    assert (alerts["group"], alerts["node"], alerts["status"]) == ("watch", "edge-b", "running")
    version.document["spec"]["groups"] = [{"id": "watch", "elements": ["alerts"]}]
    version.save()
    variation = viewer.get(f"{P}/elements/variation").json()
    assert (variation["group"], variation["node"], variation["status"]) == ("watch", "edge-b", "running")
    assert caller("editor").post(f"{P}/elements/alerts/pause").status_code == 200
    version.document = document
    version.save()
    for rows in (deployment.placements, deployment.replicas):
        rows.filter(group="watch").update(group="watch_2")
    alerts = viewer.get(f"{P}/elements/alerts").json()
    assert (alerts["group"], alerts["node"], alerts["status"]) == ("watch", "edge-b", "paused")
    hosted = viewer.get("/nodes/edge-b").json()["elements"]
    assert {(each["element"], each["group"]) for each in hosted} == {
        ("variation", "watch"),
        ("alerts", "watch"),
    }
    assert deployment.name_of("watch_2") == deployment.name_of("watch")
    assert group_id(deployment, "alerts") == "watch_2", "by which its checkpoints and files are found"


def test_what_a_rewind_has_stopped_is_still_what_it_was(caller: Call, deployment: Deployment) -> None:
    def change() -> str:
        told = caller("editor").post(f"{P}/deploy", {"dry_run": True}).json()["changes"]
        return str(next(item["change"] for item in told if item["element"] == "power"))

    deployment.placements.filter(group="power").update(role="stopped")
    assert change() == "unchanged"
    deployment.replicas.filter(group="power").update(status={"retired": True})
    assert change() == "restart", "its journal has ended, whatever an upgrade came to that had ordered it"


def test_what_was_to_come_and_could_not_is_shown_as_failed(
    caller: Call, deployment: Deployment, document: dict[str, Any]
) -> None:
    viewer = caller("viewer")
    deployment.placements.filter(group="archive").delete()  # as if it had never been there
    assert viewer.get(f"{P}/elements/archive").json()["status"] == "deploying"
    Operation.objects.create(kind="upgrade", deployment=deployment, status="failed", ended_at=timezone.now())
    assert viewer.get(f"{P}/elements/archive").json()["status"] == "failed"
    assert viewer.get(f"{P}/elements/power").json()["status"] == "running"


def test_what_was_removed_comes_back_only_under_another_name(
    caller: Call, deployment: Deployment, document: dict[str, Any]
) -> None:
    """What is left of it in Kafka and the central store has its name."""
    deployment.placements.filter(group="archive").delete()
    deployment.removed = ["archive"]
    deployment.save()
    editor = caller("editor")
    problem = assert_problem(editor.post(f"{P}/deploy"), 409)
    assert [fault["element"] for fault in problem["faults"]] == ["archive"]
    assert "give the new one another id" in problem["detail"]


@pytest.mark.usefixtures("pipeline")
def test_the_first_deployment_says_what_goes_where_and_why(caller: Call, document: dict[str, Any]) -> None:
    editor = caller("editor")
    for element in document["spec"]["elements"]:
        if element["id"] in ("alerts", "power"):
            del element["node"]
    save(editor, document)

    def told(placement: dict[str, str]) -> dict[str, Any]:
        answer = editor.post(f"{P}/deploy", {"dry_run": True, "placement": placement}).json()
        assert {item["change"] for item in answer["changes"]} == {"added"}
        return {item["element"]: item for item in answer["changes"]}

    assert {id: (item["node"], item["why"]) for id, item in told({}).items()} == {
        "readings": ("edge-a", "pinned"),
        "variation": ("edge-b", "pinned"),
        "alerts": ("edge-b", "it runs as one with variation, which is pinned there"),
        "power": ("cloud", "the fewest elements are there: 1 element"),
        "archive": ("cloud", "pinned"),
        "chart": (None, "the dashboard shows it"),
    }
    # Where lines are known, it goes nearest to what it reads; and to a site that the draft names.
    GivenLatency.objects.create(origin="edge-a", target="cloud", ms=40)
    assert [told({})["power"][key] for key in ("node", "why")] == [
        "edge-a",
        "nearest to what it reads: at the same site",
    ]
    power = next(each for each in document["spec"]["elements"] if each["id"] == "power")
    power["site"] = "cloud"
    save(editor, document)
    assert [told({})["power"][key] for key in ("node", "why")] == [
        "cloud",
        "at cloud, as the draft says; the only node that can take it",
    ]
    del power["site"]
    save(editor, document)
    assert told({"power": "edge-a"})["power"]["why"] == "this deployment asks for it"
    Node.objects.filter(name="edge-b").update(up=False)
    Node.objects.filter(name="cloud").update(cordoned=True)
    down, closed = told({})["alerts"], told({})["archive"]
    assert (down["node"], down["waits"]) == (None, True)
    assert "edge-b, which does not answer" in down["problem"]
    assert (closed["node"], closed["waits"]) == (None, False)
    assert "cordoned" in closed["problem"]


def test_what_cannot_keep_its_state_begins_anew_only_when_the_user_agrees(
    caller: Call, deployment: Deployment, document: dict[str, Any], commands: Commands
) -> None:
    editor = caller("editor")
    save(editor, with_params(document, "power", size_s=30))
    told = {item["element"]: item for item in editor.post(f"{P}/deploy", {"dry_run": True}).json()["changes"]}
    assert told["power"]["change"] == "restart"
    assert "the windows that are open now" in told["power"]["loses"]
    for body in ({}, {"restart": []}, {"restart": ["variation"]}):
        problem = assert_problem(editor.post(f"{P}/deploy", body), 409)
        assert problem["faults"] == [
            {
                "element": "power",
                "path": "spec.elements.power.params.size_s",
                "message": "Size 60 s to 30 s, which shapes the state that it keeps",
                "code": "restart",
            }
        ]
        assert 'restart: ["power"]' in problem["next"]
    deployment.refresh_from_db()
    assert (deployment.version.number, commands()) == (1, [])

    assert editor.post(f"{P}/deploy", {"restart": ["power", "variation"]}).status_code == 202
    operation = Operation.objects.get()
    assert (operation.kind, operation.restart) == ("upgrade", ["power"]), "others keep theirs"


def test_what_cannot_take_over_is_named_with_its_parameter(
    caller: Call, deployment: Deployment, document: dict[str, Any], commands: Commands
) -> None:
    editor = caller("editor")
    save(editor, with_params(document, "archive", file="other.csv"))
    told = {item["element"]: item for item in editor.post(f"{P}/deploy", {"dry_run": True}).json()["changes"]}
    assert told["archive"]["change"] == "incompatible"
    problem = assert_problem(editor.post(f"{P}/deploy", {"restart": ["archive"]}), 409)
    [fault] = problem["faults"]
    assert (fault["element"], fault["code"]) == ("archive", "incompatible")
    assert fault["path"] == "spec.elements.archive.params.file"
    assert "undeploy" in problem["next"]
    deployment.refresh_from_db()
    assert (deployment.version.number, commands()) == (1, [])


def test_what_runs_already_is_not_deployed_again(caller: Call, deployment: Deployment) -> None:
    problem = assert_problem(caller("editor").post(f"{P}/deploy"), 409)
    assert "the version that would be deployed" in problem["detail"]
    assert not Operation.objects.exists()


def test_an_upgrade_that_failed_is_repeated_by_deploying_again(
    caller: Call, deployment: Deployment, document: dict[str, Any], commands: Commands
) -> None:
    editor = caller("editor")
    save(editor, with_params(document, "alerts", condition="mf01_average > 50"))
    first = editor.post(f"{P}/deploy").json()["id"]
    Operation.objects.filter(pk=first).update(status="failed")
    assert editor.post(f"{P}/deploy").status_code == 202
    again = Operation.objects.exclude(pk=first).get()
    assert (again.kind, again.deployment_id) == ("upgrade", deployment.pk)
    # As the control side does it, but for the word that it is done: the group may still not run.
    deployment.refresh_from_db()
    for spec in planned(parse_document(deployment.version.document), deployment.pk):
        deployment.placements.filter(group=spec.group).update(spec=spec.model_dump(mode="json"))
    Operation.objects.filter(pk=again.pk).update(status="failed")
    told = editor.post(f"{P}/deploy", {"dry_run": True}).json()
    assert ({item["change"] for item in told["changes"]}, told["repeats"]) == ({"unchanged"}, True)
    assert editor.post(f"{P}/deploy").status_code == 202
    Operation.objects.exclude(pk__in=[first, again.pk]).update(status="done")
    assert "the version that would be deployed" in assert_problem(editor.post(f"{P}/deploy"), 409)["detail"]
    assert (deployment.version.number, len(commands())) == (2, 3)


@pytest.mark.usefixtures("pipeline")
@pytest.mark.parametrize("placement", [{"power": "moon"}, {"nothing": "edge-a"}])
def test_a_placement_names_what_there_is(caller: Call, placement: dict[str, str]) -> None:
    problem = assert_problem(caller("editor").post(f"{P}/deploy", {"placement": placement}), 422)
    assert problem["faults"][0]["path"].startswith("placement.")
    assert not Deployment.objects.exists()


def test_undeploying_twice_is_one_operation(caller: Call, deployment: Deployment, commands: Commands) -> None:
    first, second = (caller("editor").post(f"{P}/undeploy") for _ in range(2))
    assert first.status_code == second.status_code == 202
    assert first.json()["id"] == second.json()["id"]
    assert commands() == [("fogline.control.operation", [first.json()["id"]])]
    deployment.refresh_from_db()
    assert deployment.status == "undeploying"


def test_a_draft_that_differs_from_what_runs_says_so(
    caller: Call, deployment: Deployment, document: dict[str, Any]
) -> None:
    editor = caller("editor")
    assert editor.get(P).json()["differs"] is False
    tag = editor.get(P).headers["ETag"]
    editor.put(P, {"document": changed(document, "new")}, **{"If-Match": tag})
    item = editor.get(P).json()
    assert (item["differs"], item["deployed_version"], item["deployment"]) == (True, 1, deployment.pk)
    # What runs is shown as it was deployed.
    assert editor.get(f"{P}/elements/readings").json()["title"] != "new"


# --- at the same time ---------------------------------------------------------------------------
def at_once(count: int, call: Callable[[int], Any]) -> list[Any]:
    """What `count` threads get, each with its own connection to the database."""
    start = threading.Barrier(count)

    def run(number: int) -> Any:
        start.wait()
        try:
            return call(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.usefixtures("pipeline")
def test_of_many_who_deploy_at_once_one_does(caller: Call, commands: Commands) -> None:
    callers = [caller("editor") for _ in range(6)]
    answers = at_once(6, lambda number: callers[number].post(f"{P}/deploy").status_code)
    assert sorted(answers) == [202, 409, 409, 409, 409, 409]
    assert Deployment.objects.count() == Operation.objects.count() == len(commands()) == 1


@pytest.mark.usefixtures("pipeline")
def test_of_many_who_save_at_once_one_does_and_none_waits_in_vain(
    caller: Call, document: dict[str, Any]
) -> None:
    callers = [caller("editor") for _ in range(6)]
    tag = callers[0].get(P).headers["ETag"]

    def save(number: int) -> int:
        body = {"document": changed(document, f"by {number}")}
        return int(callers[number].put(P, body, **{"If-Match": tag}).status_code)

    assert sorted(at_once(6, save)) == [200, 409, 409, 409, 409, 409]


def test_of_many_who_move_an_element_at_once_one_does(
    caller: Call, deployment: Deployment, commands: Commands
) -> None:
    callers = [caller("operator") for _ in range(6)]
    path = f"{P}/elements/power/migrate"
    answers = at_once(6, lambda number: callers[number].post(path, {"target": "edge-b"}).status_code)
    assert sorted(answers) == [202, 409, 409, 409, 409, 409]
    assert len(commands()) == 1
