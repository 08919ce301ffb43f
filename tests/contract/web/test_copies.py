"""Copies of elements at sites: drawn for the editor, and changed in what runs by one click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeline_runtime.planning.copies import with_copies
from tests.contract.web.conftest import PIPELINE, Caller, audited
from webapp.nodes.models import Node
from webapp.operations.copies import change_copies
from webapp.operations.models import Operation
from webapp.pipelines.models import Pipeline
from webapp.placements.models import Deployment
from webapp.placements.selectors import planned_for
from webapp.policies.models import Policy

Call = Callable[[str | None], Caller]
RULE = {"kind": "sites", "pipeline": "", "for_s": 60, "gone": "take-out", "gone_s": 300}
COPIES, SITES = f"/pipelines/{PIPELINE}/copies", f"/pipelines/{PIPELINE}/sites"
FLOW: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": PIPELINE},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 5, "key_prefix": "{site}-"}},
            {"id": "kept", "type": "filter", "params": {"condition": "n > 0"}, "inputs": {"in": "numbers"}},
        ]
    },
}


@pytest.fixture
def copied(deployment: Deployment) -> Deployment:
    """What runs has a copy of its source at two of three sites."""
    for node, site in {"edge-a": "Hall", "edge-b": "Barn", "cloud": "Yard"}.items():
        Node.objects.filter(name=node).update(site=site)
    document, _ = with_copies(FLOW, {}, ["numbers"], ["Hall", "Barn"])
    deployment.version.document = document
    deployment.version.save()
    Pipeline.objects.filter(pk=deployment.pipeline_id).update(draft=document)
    deployment.replicas.all().delete()
    deployment.placements.all().delete()
    for spec in planned_for(deployment, document):
        node = Node.objects.get(name="edge-b" if spec.group == "numbers-barn" else "edge-a")
        deployment.placements.create(group=spec.group, spec=spec.model_dump(mode="json"), node=node)
    return Deployment.objects.select_related("pipeline", "version").get(pk=deployment.pk)


def ids(document: dict[str, Any]) -> set[str]:
    return {each["id"] for each in document["spec"]["elements"]}


def draft() -> dict[str, Any]:
    found: dict[str, Any] = Pipeline.objects.get(name=PIPELINE).draft
    return found


@pytest.mark.usefixtures("deployment")
def test_copies_are_drawn_and_nothing_is_saved(caller: Call) -> None:
    before = draft()
    body = {"document": FLOW, "elements": ["numbers"], "sites": ["Hall", "Barn"]}
    response = caller("viewer").post(COPIES, body)
    assert response.status_code == 200, response.content
    assert response.json()["elements"] == ["numbers", "numbers-barn"]
    assert ids(response.json()["document"]) == {"numbers", "numbers-barn", "numbers-all", "kept"}
    assert draft() == before
    grouped = {**FLOW, "spec": {**FLOW["spec"], "groups": [{"id": "one", "elements": ["numbers", "kept"]}]}}
    refused = caller("viewer").post(COPIES, body | {"document": grouped})
    assert refused.status_code == 409
    assert refused.json()["detail"] == "numbers runs as one with kept: select that, too."


def test_a_site_gets_its_copies_in_the_draft_and_in_what_runs(caller: Call, copied: Deployment) -> None:
    response = caller("editor").post(SITES, {"site": "Yard", "change": "copy"})
    assert response.status_code == 202, response.content
    assert (response.json()["kind"], response.json()["reason"]) == ("upgrade", "")
    assert ids(draft()) == ids(copied.version.document) | {"numbers-yard"}
    copied.refresh_from_db()
    assert copied.version.document == draft()
    assert copied.version.note == "copies at Yard"
    assert audited("pipeline.copies") == 1
    # It is under way; and then there is nothing left to do.
    assert caller("editor").post(SITES, {"site": "Yard", "change": "take-out"}).status_code == 409
    Operation.objects.update(status="done")
    again = caller("editor").post(SITES, {"site": "Yard", "change": "copy"})
    assert again.status_code == 409


def test_a_merge_that_reads_fewer_streams_is_upgraded_and_nothing_else_is(
    caller: Call, copied: Deployment
) -> None:
    changed = caller("editor").post(SITES, {"site": "Barn", "change": "take-out"})
    assert changed.status_code == 202, changed.content
    assert ids(draft()) == {"numbers", "numbers-all", "kept"}
    last = caller("editor").post(SITES, {"site": "Hall", "change": "take-out"})
    assert last.status_code == 409


def test_only_what_is_drawn_as_it_runs_is_changed(caller: Call, copied: Deployment) -> None:
    document = draft()
    document["spec"]["elements"][0]["params"]["rate"] = 9
    Pipeline.objects.filter(name=PIPELINE).update(draft=document)
    refused = caller("editor").post(SITES, {"site": "Yard", "change": "copy"})
    assert refused.status_code == 409
    assert "its draft differs from the running version" in refused.json()["detail"]
    assert draft() == document


def test_who_has_ordered_it_is_the_policy(copied: Deployment) -> None:
    operation = change_copies(None, PIPELINE, "Yard", "copy", "policy plants")
    assert (operation.reason, operation.site, operation.created_by) == ("policy plants", "Yard", None)
    assert Deployment.objects.get(pk=copied.pk).version.note == "copies at Yard, by the policy plants"


def test_what_it_advises_needs_attention(caller: Call) -> None:
    made = caller("operator").post("/policies", {"name": "plants", "rule": RULE})
    assert made.status_code == 201, made.content
    standing = {
        "node": "",
        "code": "copy",
        "why": "Yard is there.",
        "since": "2026-11-20T12:00:00+00:00",
        "site": "Yard",
        "group": None,
        "pipeline": PIPELINE,
        "element": None,
        "title": None,
        "target": None,
    }
    Policy.objects.update(standing=[standing])

    def advised() -> list[dict[str, Any]]:
        found = caller("viewer").get("/overview").json()["attention"]
        return [line for line in found if line["kind"] == "policy.advice"]

    [line] = advised()
    assert line["message"] == f"plants advises to give {PIPELINE} its copies at Yard. Yard is there."
    assert (line["pipeline"], line["site"], line["change"]) == (PIPELINE, "Yard", "copy")
    # What it cannot do by itself it says, also where it does not only advise.
    Policy.objects.update(mode="automatic")
    assert advised() == []
    Policy.objects.update(standing=[standing | {"code": "refused"}])
    [line] = advised()
    assert "does not change the copies" in line["message"]
    assert "change" not in line
    assert caller("viewer").get("/policies").json()[0]["standing"][0]["site"] == "Yard"


@pytest.mark.usefixtures("deployment")
def test_what_becomes_of_copies_is_said_once(caller: Call) -> None:
    assert caller("operator").post("/policies", {"name": "plants", "rule": RULE}).status_code == 201
    one = RULE | {"pipeline": PIPELINE}
    assert caller("operator").post("/policies", {"name": "other", "rule": one}).status_code == 409
    off = caller("operator").post("/policies", {"name": "other", "rule": one, "enabled": False})
    assert off.status_code == 201
    wrong = caller("operator").post("/policies", {"name": "third", "rule": RULE | {"pipeline": "none"}})
    assert wrong.status_code == 422


def test_what_if_the_node_of_a_copy_dies_is_told_by_the_policy(caller: Call, copied: Deployment) -> None:
    def outcome() -> tuple[str | None, bool, str | None]:
        [group] = caller("viewer").get("/nodes/edge-b/failure").json()["groups"]
        return group["target"], group["by_itself"], group["reason"]

    assert outcome()[:2] != (None, False)
    rule = {"kind": "sites", "pipeline": "", "for_s": 60, "gone": "wait", "gone_s": 60}
    policy = Policy.objects.create(name="plants", rule=rule, mode="automatic")
    assert outcome() == (None, False, "it waits for Barn: the policy plants keeps its copies there")
    other = Node.objects.create(name="edge-c", site="Barn", up=True, ready=True)
    assert outcome() == (other.name, True, None)
    Policy.objects.filter(pk=policy.pk).update(rule=rule | {"gone": "elsewhere"})
    other.delete()
    assert outcome()[:2] != (None, False)
