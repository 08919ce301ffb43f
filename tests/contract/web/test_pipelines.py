"""Drafts, versions, deployment, pause."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import pytest
from django.db import connection

from tests.contract.web.conftest import PIPELINE, Caller, audited, save
from tests.contract.web.test_permissions import assert_problem
from webapp.accounts.models import User
from webapp.audit.models import AuditRecord
from webapp.nodes.models import GivenLatency, Node
from webapp.operations.models import Operation
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
        "readings": ("edge-a", "the draft names this node"),
        "variation": ("edge-b", "the draft names this node"),
        "alerts": ("edge-b", "it runs as one with variation, for which the draft names this node"),
        "power": ("cloud", "the fewest elements are there: 1 element"),
        "archive": ("cloud", "the draft names this node"),
        "chart": (None, "the dashboard shows it"),
    }
    assert [id for id, item in told({}).items() if item.get("view")] == ["chart"]
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
