"""Upgrades in place: what deploying another version over a running pipeline changes, and what it refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from pipeline_runtime.model.document import parse_document
from tests.contract.web.conftest import PIPELINE, Caller, audited, save
from tests.contract.web.test_permissions import assert_problem
from webapp.handovers.facts import group_id
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.pipelines.checking import planned
from webapp.placements.models import Deployment

P = f"/pipelines/{PIPELINE}"
Call = Callable[[str | None], Caller]
Commands = Callable[[], list[tuple[str, list[Any]]]]


def with_params(document: dict[str, Any], element: str, **params: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(document)
    found = next(item for item in made["spec"]["elements"] if item["id"] == element)
    found["params"] |= params
    return made


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
    assert (told["chart"]["view"], went["view"]) == (True, False)
    assert (came["change"], came["title"], came["node"], came["why"]) == (
        "added",
        "Loud",
        "cloud",
        "the draft names this node",
    )
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
    assert viewer.get(f"{P}/elements/alerts").json()["status"] == "running", "its owner has not said so yet"
    watch = deployment.replicas.get(group="watch")
    watch.status["paused"] = True
    watch.save()
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
