"""Tests the page of an element's state, key by key. The web sends its question to the element's node, over a
real Redis.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from pipeline_runtime.model.kept import KeptAnswer, KeptEntry, KeptQuestion
from pipeline_runtime.operators.sdk import DataFrameOperator
from pipeline_runtime.wire import keys, tasks
from tests.contract.web.asked_node import asked_node
from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_permissions import assert_problem
from webapp.backends import node_questions
from webapp.monitoring import kept
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.placements.models import Deployment
from workers.node.answers import Answers

E = f"/pipelines/{PIPELINE}/elements"
Call = Callable[[str | None], Caller]
KEPT = KeptAnswer(
    keys=700,
    entries=(
        KeptEntry(key="press 1", state='{"sum":12}', timers_ms=(1000, 2**62)),
        KeptEntry(key="press 2", state='{"sum":[1,2', state_cut=True),
        KeptEntry(key="x", key_cut=True, state="NaN"),
    ),
    next="press 3",
)


def node(
    there: redis.Redis, url: str, answer: Callable[[KeptQuestion], KeptAnswer]
) -> AbstractContextManager[list[KeptQuestion]]:
    def look(question: dict[str, Any]) -> None:
        Answers(url).look(question, answer)

    return asked_node(there, tasks.NODE_LOOK, KeptQuestion, look, "cloud")


def test_a_viewer_sees_what_the_node_of_the_element_tells(
    caller: Call, deployment: Deployment, real_redis: redis.Redis, redis_url: str
) -> None:
    with node(real_redis, redis_url, lambda _: KEPT) as asked:
        page = caller("viewer").get(f"{E}/power/state?key=press&after=press%200&limit=3").json()
    [question] = asked
    assert (question.group, question.element) == (f"{deployment.pk}.power", "power")
    assert (question.search, question.after, question.limit) == ("press", "press 0", 3)
    assert (page["keys"], page["next"], page["looked"]) == (700, "press 3", None)
    assert page["at"]
    first, cut, odd = page["entries"]
    assert first["state"] == {"sum": 12}
    assert first["timers"] == ["1970-01-01T00:00:01+00:00", None]
    assert (cut["state"], cut["state_cut"]) == ('{"sum":[1,2', True)
    assert (odd["state"], odd["key_cut"]) == ("NaN", True)
    assert not real_redis.exists(keys.node_answer(question.id)), "it is fetched"


def test_an_answer_that_nobody_fetches_goes_by_itself(real_redis: redis.Redis, redis_url: str) -> None:
    question = KeptQuestion(id="0" * 32, group="d.power", element="power", limit=1)
    Answers(redis_url).look(question.model_dump(), lambda _: KEPT)
    assert 0 < real_redis.ttl(keys.node_answer(question.id)) <= keys.ANSWER_LASTS_S


def test_a_question_that_cannot_be_read_is_ignored_without_a_word_of_it(
    real_redis: redis.Redis, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    Answers(redis_url).look({"id": "../fogline:control", "search": "secret", "limit": 1}, lambda _: KEPT)
    assert "ignored" in caplog.text
    assert "secret" not in caplog.text
    assert real_redis.keys("fogline:answer:*") == []


@pytest.mark.parametrize(
    ("refused", "status", "words"),
    [
        ("away", 409, "does not run on cloud"),
        ("elsewhere", 409, "runs as one with it"),
        ("failed", 503, "log of cloud"),
    ],
)
@pytest.mark.usefixtures("deployment")
def test_what_the_node_refuses_is_told(
    caller: Call, real_redis: redis.Redis, redis_url: str, refused: Any, status: int, words: str
) -> None:
    with node(real_redis, redis_url, lambda _: KeptAnswer(refused=refused)):
        problem = assert_problem(caller("viewer").get(f"{E}/power/state"), status)
    assert words in problem["detail"] + problem.get("next", "")


@pytest.mark.usefixtures("deployment")
def test_a_look_that_fails_in_the_node_is_told_and_leaves_no_rows_in_a_log(
    caller: Call, real_redis: redis.Redis, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(question: KeptQuestion) -> KeptAnswer:
        raise RuntimeError(f"secret {question.search}")

    with node(real_redis, redis_url, fails):
        assert_problem(caller("viewer").get(f"{E}/power/state?key=secret"), 503)
    assert "secret" not in caplog.text


@pytest.mark.usefixtures("deployment")
def test_a_node_that_does_not_answer_is_named(caller: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_questions, "ANSWER_S", 1)
    problem = assert_problem(caller("viewer").get(f"{E}/power/state"), 503)
    assert "cloud did not answer" in problem["detail"]


@pytest.mark.usefixtures("deployment")
def test_a_node_that_is_down_is_not_waited_for(
    caller: Call, real_redis: redis.Redis, nodes: dict[str, Node]
) -> None:
    Node.objects.filter(name="cloud").update(up=False)
    assert "cloud" in assert_problem(caller("viewer").get(f"{E}/power/state"), 503)["detail"]
    assert not real_redis.exists(tasks.node_queue("cloud"))


@pytest.mark.usefixtures("deployment")
def test_without_redis_nothing_is_asked(caller: Call, settings: Any) -> None:
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})
    assert "Redis" in assert_problem(caller("viewer").get(f"{E}/power/state"), 503)["detail"]


@pytest.mark.parametrize(("element", "words"), [("alerts", "no state"), ("chart", "no state")])
@pytest.mark.usefixtures("deployment")
def test_an_element_without_state_says_so(caller: Call, element: str, words: str) -> None:
    assert words in assert_problem(caller("viewer").get(f"{E}/{element}/state"), 409)["detail"]


@pytest.mark.usefixtures("deployment")
def test_of_a_state_that_spark_keeps_it_is_said_so(caller: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    class OfSpark(DataFrameOperator):
        stateful = True

    monkeypatch.setattr(kept, "default_registry", lambda: SimpleNamespace(get=lambda _: OfSpark))
    assert "Spark" in assert_problem(caller("viewer").get(f"{E}/power/state"), 409)["detail"]


def test_a_draft_keeps_nothing_yet(caller: Call, pipeline: Pipeline) -> None:
    assert "does not run" in assert_problem(caller("viewer").get(f"{E}/power/state"), 409)["detail"]


@pytest.mark.usefixtures("deployment")
def test_what_is_asked_has_bounds(caller: Call) -> None:
    for asked in ("limit=0", "limit=101", f"key={'k' * 1001}", f"after={'k' * 4001}"):
        assert_problem(caller("viewer").get(f"{E}/power/state?{asked}"), 422)
    assert_problem(caller("viewer").get(f"{E}/nothing/state"), 404)
