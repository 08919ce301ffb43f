"""A preview of an element of a draft: the web asks a node, over a real Redis."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import redis
from django.utils import timezone

from pipeline_runtime.model.preview import (
    PreviewAnswer,
    PreviewLetter,
    PreviewQuestion,
    PreviewRow,
    PreviewStream,
    Refusal,
    SampleRow,
)
from pipeline_runtime.wire import tasks
from tests.contract.web.asked_node import asked_node
from tests.contract.web.conftest import PIPELINE, Caller, audited
from tests.contract.web.test_permissions import assert_problem
from webapp.backends import node_questions
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.placements.models import Deployment
from workers.node.answers import Answers

E = f"/pipelines/{PIPELINE}/elements"
Call = Callable[[str | None], Caller]
STREAM = PreviewStream(
    columns=("mf01",), rows=(PreviewRow(key="press 1", time_ms=1000, values=(1.5,), reason="why"),), count=7
)
ANSWER = PreviewAnswer(
    inputs={"in": STREAM},
    output=STREAM,
    letters=(PreviewLetter(reason="why", raw="{}"),),
    letters_count=1,
    read=7,
    lost={"readings": 2},
)


def node(
    there: redis.Redis, url: str, name: str, answer: PreviewAnswer
) -> AbstractContextManager[list[PreviewQuestion]]:
    def give(question: dict[str, Any]) -> None:
        Answers(url).give(question["id"], answer)

    return asked_node(there, tasks.NODE_PREVIEW, PreviewQuestion, give, name)


def test_an_editor_sees_what_a_node_tells_and_the_draft_stays(
    caller: Call, pipeline: Pipeline, nodes: dict[str, Node], real_redis: redis.Redis, redis_url: str
) -> None:
    Node.objects.filter(name="edge-a").update(load={"cpu_ratio": 0.9})
    before = pipeline.draft_revision
    with node(real_redis, redis_url, "edge-b", ANSWER) as asked:
        shown = caller("editor").post(f"{E}/power/preview", {"node": "edge-b"}).json()
    assert [spec.group for spec in asked[0].groups] == ["readings", "power"]
    assert (asked[0].element, asked[0].reads) == ("power", {"in": "readings.out"})
    assert (shown["node"], shown["trouble"], shown["read"], shown["whole"]) == ("edge-b", None, 7, False)
    assert shown["inputs"][0]["element"] == "readings"
    assert shown["inputs"][0]["rows"] == [
        {"at": "1970-01-01T00:00:01+00:00", "key": "press 1", "values": [1.5], "reason": "why"}
    ]
    assert "mf01" in [column["name"] for column in shown["inputs"][0]["columns"]]
    assert shown["output"]["count"] == 7
    assert [each["count"] for each in shown["lost"]] == [2]
    assert Pipeline.objects.get(pk=pipeline.pk).draft_revision == before


def test_without_a_choice_the_node_of_the_draft_is_asked_and_without_one_the_least_busy(
    caller: Call, pipeline: Pipeline, nodes: dict[str, Node], real_redis: redis.Redis, redis_url: str
) -> None:
    Node.objects.filter(name="edge-b").update(load={"cpu_ratio": 0.01})
    draft = pipeline.draft
    pins = {each["id"]: each.get("node") for each in draft["spec"]["elements"]}
    with node(real_redis, redis_url, pins["readings"] or "edge-b", ANSWER):
        assert caller("editor").post(f"{E}/power/preview").json()["node"] == (pins["readings"] or "edge-b")
    for each in draft["spec"]["elements"]:
        each.pop("node", None)
    with node(real_redis, redis_url, "edge-b", ANSWER):
        assert caller("editor").post(f"{E}/power/preview", {"document": draft}).json()["node"] == "edge-b"


def test_the_running_streams_are_read_when_that_is_asked(
    caller: Call, deployment: Deployment, real_redis: redis.Redis, redis_url: str
) -> None:
    with node(real_redis, redis_url, "cloud", ANSWER) as asked:
        caller("editor").post(f"{E}/power/preview", {"rows": "running", "node": "cloud"})
    [group] = asked[0].groups
    assert [stream.topic for stream in group.inputs] == [f"fl.{deployment.pk}.readings.out"]


def test_a_draft_that_does_not_run_has_no_running_rows(caller: Call, pipeline: Pipeline) -> None:
    problem = assert_problem(caller("editor").post(f"{E}/power/preview", {"rows": "running"}), 409)
    assert "Nothing that runs" in problem["detail"]


def test_faults_that_are_in_the_way_are_told_and_others_are_not(
    caller: Call, pipeline: Pipeline, nodes: dict[str, Node], real_redis: redis.Redis, redis_url: str
) -> None:
    draft = pipeline.draft
    power = next(each for each in draft["spec"]["elements"] if each["id"] == "power")
    power["params"]["size_s"] = -1
    problem = assert_problem(caller("editor").post(f"{E}/power/preview", {"document": draft}), 422)
    assert {fault["element"] for fault in problem["faults"]} == {"power"}
    with node(real_redis, redis_url, "cloud", ANSWER):
        body = {"document": draft, "node": "cloud"}
        assert caller("editor").post(f"{E}/readings/preview", body).status_code == 200


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        ("busy", "other previews"),
        ("fetching", "fetches the file"),
        ("starting", "starts the process"),
        ("reading", "still reads"),
        ("too-long", "few seconds"),
        ("too-much", "memory"),
        ("spark", "written for Spark"),
        ("unread", "does not read what comes"),
        ("unreachable", "cannot be reached"),
        ("failed", "ValueError"),
        ("ended", "without an answer"),
    ],
)
def test_what_the_node_refuses_is_told_in_words(
    caller: Call,
    pipeline: Pipeline,
    nodes: dict[str, Node],
    real_redis: redis.Redis,
    redis_url: str,
    refused: Refusal,
    words: str,
) -> None:
    answer = PreviewAnswer(refused=refused, at="power", why="ValueError: {braces}")
    with node(real_redis, redis_url, "cloud", answer):
        shown = caller("editor").post(f"{E}/power/preview", {"node": "cloud"}).json()
    assert shown["trouble"]["kind"] == refused
    assert words in shown["trouble"]["message"]


def test_a_viewer_may_not_and_bad_requests_are_refused(
    caller: Call, pipeline: Pipeline, nodes: dict[str, Node]
) -> None:
    assert_problem(caller("viewer").post(f"{E}/power/preview"), 403)
    assert_problem(caller(None).post(f"{E}/power/preview"), 401)
    editor = caller("editor")
    assert_problem(editor.post(f"{E}/nothing/preview"), 404)
    assert_problem(editor.post(f"{E}/power/preview", {"rows": "other"}), 422)
    assert_problem(editor.post(f"{E}/power/preview", {"more": 1}), 422)
    assert_problem(editor.post(f"{E}/power/preview", {"document": {"spec": 7}}), 404)


def test_without_a_node_or_an_answer_it_is_said_so(
    caller: Call, pipeline: Pipeline, nodes: dict[str, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_questions, "PREVIEW_S", 1)
    problem = assert_problem(caller("editor").post(f"{E}/power/preview", {"node": "cloud"}), 503)
    assert "cloud did not answer" in problem["detail"]
    Node.objects.update(up=False)
    assert (
        "cloud"
        in assert_problem(caller("editor").post(f"{E}/power/preview", {"node": "cloud"}), 503)["detail"]
    )
    assert "No node" in assert_problem(caller("editor").post(f"{E}/power/preview"), 503)["detail"]


def output_of(*values: float) -> PreviewAnswer:
    rows = tuple(PreviewRow(key=None, time_ms=1000, values=(None, None, value)) for value in values)
    return ANSWER.model_copy(
        update={
            "output": PreviewStream(
                columns=("window_start", "window_end", "mf01_average"), rows=rows, count=len(rows)
            ),
            "sample": {"in": (SampleRow(time_ms=1000, values={"mf01": 1.5}),)},
            "letters_count": 0,
        }
    )


def test_rows_are_pinned_expected_and_checked(
    caller: Call, pipeline: Pipeline, nodes: dict[str, Node], real_redis: redis.Redis, redis_url: str
) -> None:
    editor, power = caller("editor"), f"{E}/power"
    draft = pipeline.draft
    for each in draft["spec"]["elements"]:
        each["node"] = "cloud"
    body = {"document": draft}

    def told(answer: PreviewAnswer, call: Callable[[], Any]) -> tuple[Any, PreviewQuestion]:
        with node(real_redis, redis_url, "cloud", answer) as asked:
            response = call()
        assert response.status_code == 200, response.content
        return response.json(), asked[0]

    assert_problem(editor.post(f"{power}/preview", {**body, "rows": "pinned"}), 404)
    assert_problem(editor.put(f"{power}/expected-rows", body), 404)
    pinned, question = told(output_of(1, 2), lambda: editor.put(f"{power}/pinned-rows", body))
    assert (pinned["rows"], pinned["expects"], pinned["by"], question.sample) == (
        1,
        False,
        "editor-user",
        True,
    )
    assert editor.post(f"/pipelines/{PIPELINE}/check-expected", body).json() == []
    expected, question = told(output_of(1, 2), lambda: editor.put(f"{power}/expected-rows", body))
    # only the element itself runs, on the pinned rows
    assert [group.group for group in question.groups] == ["power"]
    assert question.given == {"readings.out": (SampleRow(time_ms=1000, values={"mf01": 1.5}),)}
    assert (expected["expects"], expected["differences"]) == (True, [])

    def check(answer: PreviewAnswer) -> Any:
        [found], _ = told(answer, lambda: editor.post(f"/pipelines/{PIPELINE}/check-expected", body))
        return found

    same = check(output_of(1, 2))
    assert (same["element"], same["differences"], same["trouble"]) == ("power", [], None)
    cell = {"name": "mf01_average", "expected": 2.0, "found": 2.5}
    other = check(output_of(1, 2.5, 3))["differences"]
    assert other == [
        {"place": 2, "kind": "differs", "cells": [cell]},
        {"place": 3, "kind": "unexpected", "cells": []},
    ]
    assert [each["kind"] for each in check(output_of(1))["differences"]] == ["missing"]
    assert check(ANSWER.model_copy(update={"refused": "busy"}))["trouble"]
    shown, _ = told(output_of(1), lambda: editor.post(f"{power}/preview", {**body, "rows": "pinned"}))
    assert [each["place"] for each in shown["pinned"]["differences"]] == [2]
    # an element that is no longer drawn is not checked
    gone = {
        **draft,
        "spec": {"elements": [each for each in draft["spec"]["elements"] if each["id"] != "power"]},
    }
    assert editor.post(f"/pipelines/{PIPELINE}/check-expected", {"document": gone}).json() == []

    told(output_of(3), lambda: editor.put(f"{power}/pinned-rows", body))  # forgets what was expected
    assert editor.post(f"/pipelines/{PIPELINE}/check-expected", body).json() == []
    assert editor.delete(f"{power}/pinned-rows").status_code == 204
    assert_problem(editor.post(f"{power}/preview", {**body, "rows": "pinned"}), 404)
    counts = [audited(f"element.{each}") for each in ("pin_rows", "expect_rows", "unpin_rows")]
    assert counts == [2, 1, 1]


def test_a_deployment_by_rest_is_refused_if_an_element_makes_other_rows_than_expected(
    caller: Call, pipeline: Pipeline, nodes: dict[str, Node], real_redis: redis.Redis, redis_url: str
) -> None:
    for each in pipeline.draft["spec"]["elements"]:
        each["node"] = "cloud"
    pipeline.save()
    row = {"at": "1970-01-01T00:00:01+00:00", "key": None, "values": [None, None, 1.0], "reason": None}
    expected = {"columns": ["window_start", "window_end", "mf01_average"], "rows": [row], "letters": 0}
    rows = {"in": [{"time_ms": 1000, "values": {"mf01": 1.5}}]}
    pipeline.samples.create(element="power", inputs=rows, expected=expected, created_at=timezone.now())
    editor = caller("editor")

    def deploy(answer: PreviewAnswer) -> Any:
        with node(real_redis, redis_url, "cloud", answer):
            return editor.post(f"/pipelines/{PIPELINE}/deploy", {})

    problem = assert_problem(deploy(output_of(2)), 409)
    assert "makes other rows of its pinned rows than expected" in problem["detail"]
    assert [each["element"] for each in problem["checks"]] == ["power"]
    busy = assert_problem(deploy(ANSWER.model_copy(update={"refused": "busy"})), 409)
    assert "was not checked: " in busy["detail"]
    assert not Deployment.objects.exists()
    assert deploy(output_of(1)).status_code == 202
    Deployment.objects.all().delete()
    unchecked = editor.post(f"/pipelines/{PIPELINE}/deploy", {"check_expected": False})
    assert unchecked.status_code == 202


def test_what_cannot_be_pinned_is_refused(
    caller: Call, pipeline: Pipeline, nodes: dict[str, Node], real_redis: redis.Redis, redis_url: str
) -> None:
    editor, body = caller("editor"), {"node": "cloud"}
    assert_problem(editor.put(f"{E}/readings/pinned-rows", body), 422)
    long = SampleRow(time_ms=1, values={"mf01": "x" * 300_000})
    for sample, status in (({"in": ()}, 409), ({"in": (long,)}, 422)):
        with node(real_redis, redis_url, "cloud", ANSWER.model_copy(update={"sample": sample})):
            assert_problem(editor.put(f"{E}/power/pinned-rows", body), status)
    problem = assert_problem(editor.put(f"{E}/chart/pinned-rows", body), 422)
    assert "only shows rows" in problem["detail"]
    assert not pipeline.samples.exists()


def test_an_element_that_has_become_a_view_makes_nothing_of_its_pinned_rows_and_says_so(
    caller: Call, pipeline: Pipeline, nodes: dict[str, Node]
) -> None:
    expected = {"columns": ["mf01"], "rows": [], "letters": 0}
    rows = {"in": [{"time_ms": 1000, "values": {"mf01": 1.5}}]}
    pipeline.samples.create(element="chart", inputs=rows, expected=expected, created_at=timezone.now())
    editor = caller("editor")
    problem = assert_problem(editor.post(f"{E}/chart/preview", {"rows": "pinned"}), 422)
    assert "only shows rows" in problem["detail"]
    [check] = editor.post(f"/pipelines/{PIPELINE}/check-expected").json()
    assert (check["element"], check["trouble"]) == ("chart", problem["detail"])
