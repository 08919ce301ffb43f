"""Templates: what the gallery is told, and the pipelines that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeline_runtime.model.document import NAME_MAX
from pipeline_runtime.model.templates import load_page, load_template, template_names
from tests.contract.web.conftest import PIPELINE, Caller, audited
from webapp.accounts.models import User
from webapp.nodes.models import Node
from webapp.pipelines.models import DataFile, Pipeline, SavedTemplate

Call = Callable[[str | None], Caller]


def nodes_of(document: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["node"] for each in document["spec"]["elements"] if "node" in each}


def marked_in(document: dict[str, Any]) -> list[str]:
    return [each["id"] for each in document["spec"]["elements"] if each.get("ui", {}).get("replace")]


def test_the_gallery_has_a_card_of_each_template(caller: Call) -> None:
    cards = caller("viewer").get("/templates").json()
    assert [card["name"] for card in cards] == list(template_names())
    assert {card["made"] for card in cards} == {None}
    for card in cards:
        page = load_page(card["name"])
        front = {"title": page.title, "shows": page.shows, "runs": page.runs, "data": page.data}
        assert front.items() <= card.items()
        assert card["replace"] == list(page.replace)
        assert card["document"] == load_template(card["name"]).to_data()


def test_a_template_has_a_page_with_words_for_each_element(caller: Call) -> None:
    found = caller("viewer").get("/templates/additive-control").json()
    page = load_page("additive-control")
    assert (found["text"], found["elements"]) == (page.text, page.elements)
    assert found["name"] == "additive-control"
    assert found["document"] == load_template("additive-control").to_data()


@pytest.mark.usefixtures("nodes")
def test_a_pipeline_of_a_template_has_its_name_or_the_next_one_that_is_free(caller: Call) -> None:
    editor = caller("editor")
    for name in ("numbers-average", "numbers-average-2", "numbers-average-3"):
        answer = editor.post("/templates/numbers-average/pipelines")
        assert answer.status_code == 201
        assert answer.headers["ETag"] == '"1"'
        made = answer.json()
        assert (made["name"], made["document"]["metadata"]["name"]) == (name, name)
        assert len(name) <= NAME_MAX
    assert made["document"]["spec"] == load_template("numbers-average").to_data()["spec"]
    assert audited("pipeline.create") == 3


@pytest.mark.usefixtures("nodes")
def test_it_takes_the_name_that_it_is_given_and_no_other(caller: Call) -> None:
    path, named = "/templates/numbers-average/pipelines", {"name": "averages"}
    made = caller("editor").post(path, named).json()
    assert (made["name"], made["document"]["metadata"]["name"]) == ("averages", "averages")
    taken, wrong = (caller("editor").post(path, {"name": name}) for name in ("averages", "No name!"))
    assert (taken.status_code, wrong.status_code, Pipeline.objects.count()) == (409, 422, 1)


def test_it_is_pinned_to_the_nodes_that_are_there_alone(caller: Call, nodes: dict[str, Node]) -> None:
    pinned = nodes_of(load_template("machine-power").to_data())
    assert set(pinned.values()) == set(nodes)
    whole = caller("editor").post("/templates/machine-power/pipelines").json()
    assert nodes_of(whole["document"]) == pinned
    nodes["edge-b"].delete()
    rest = caller("editor").post("/templates/machine-power/pipelines").json()
    assert nodes_of(rest["document"]) == {id: node for id, node in pinned.items() if node != "edge-b"}


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("template", template_names())
def test_what_is_to_be_replaced_says_so_where_that_is_asked_for(caller: Call, template: str) -> None:
    plain = caller("editor").post(f"/templates/{template}/pipelines", {"mark": False}).json()
    assert marked_in(plain["document"]) == []
    mine = caller("editor").post(f"/templates/{template}/pipelines", {"mark": True}).json()
    assert marked_in(mine["document"]) == list(load_page(template).replace)
    assert caller("editor").post(f"/pipelines/{mine['name']}/validate", {}).json()["faults"] == []


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("template", template_names())
def test_it_can_be_deployed_as_it_is(caller: Call, template: str) -> None:
    made = caller("editor").post(f"/templates/{template}/pipelines").json()
    answer = caller("editor").post(f"/pipelines/{made['name']}/deploy", {"revision": made["revision"]})
    assert (answer.status_code, answer.json()["pipeline"]) == (202, made["name"])


def test_who_may_not_make_pipelines_makes_none(caller: Call) -> None:
    answer = caller("operator").post("/templates/numbers-average/pipelines")
    assert (answer.status_code, Pipeline.objects.count()) == (403, 0)


WORDS = {
    "title": "Power of a press",
    "description": "What a press draws.",
    "text": "# Power\n\nOf *one* press.",
}


def test_a_pipeline_is_saved_as_a_template_and_used_by_others(caller: Call, pipeline: Pipeline) -> None:
    body = {**WORDS, "pipeline": PIPELINE, "words": {"power": "Sums it up."}, "replace": ["readings"]}
    made = caller("editor").post("/templates", body)
    assert made.status_code == 201, made.content
    page = made.json()
    assert WORDS.items() <= page.items()
    assert (page["name"], page["replace"], page["made"]["by"]) == (
        "power-of-a-press",
        ["readings"],
        "editor-user",
    )
    assert page["elements"]["power"] == "Sums it up."
    assert list(page["elements"]) == [each["id"] for each in pipeline.draft["spec"]["elements"]]
    assert caller("viewer").get("/templates").json()[0]["name"] == "power-of-a-press"

    other = caller("admin").post("/templates/power-of-a-press/pipelines", {"title": "Mine", "mark": True})
    document = other.json()["document"]
    assert marked_in(document) == ["readings"]
    assert document["metadata"]["name"] == "mine"

    assert caller("editor").post("/templates", body).status_code == 409
    assert caller("editor").post("/templates", {**body, "words": {"no": "x"}}).status_code == 422
    pipeline.draft = {**pipeline.draft, "spec": {"elements": [{"type": 1}]}}
    pipeline.save()
    assert caller("editor").post("/templates", {**body, "title": "Another"}).status_code == 422


def test_who_saved_a_template_and_an_admin_delete_it_and_nobody_else(
    caller: Call, pipeline: Pipeline, users: dict[str, User]
) -> None:
    body, path = {**WORDS, "pipeline": PIPELINE}, "/templates/power-of-a-press"
    for role, maker, status in (
        ("editor", "admin", 403),
        ("admin", "editor", 204),
        ("editor", "editor", 204),
    ):
        SavedTemplate.objects.all().delete()
        assert caller(maker).post("/templates", body).status_code == 201
        assert caller(role).delete(path).status_code == status
        assert SavedTemplate.objects.exists() == (status == 403)
    assert audited("template.delete") == 2


def test_a_file_that_a_template_names_counts_as_used(caller: Call, pipeline: Pipeline) -> None:
    DataFile.objects.create(id="aaaaaaaa", name="machines.csv", sha256="a", size=1)
    element = {"id": "e", "type": "csv-replay", "params": {"path": "upload:aaaaaaaa"}}
    pipeline.draft = {**pipeline.draft, "spec": {"elements": [element]}}
    pipeline.save()
    assert caller("editor").post("/templates", {**WORDS, "pipeline": PIPELINE}).status_code == 201
    Pipeline.objects.all().delete()
    answer = caller("editor").delete("/files/aaaaaaaa")
    assert answer.status_code == 409
    assert "the template Power of a press" in answer.json()["detail"]
