"""A node's log: the web asks the node, over a real Redis."""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from pipeline_runtime.model.node_log import LogAnswer, LogQuestion
from pipeline_runtime.wire import tasks
from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_permissions import assert_problem
from tests.waiting import PATIENCE_S
from webapp.backends import node_questions
from webapp.nodes.models import Node
from webapp.placements.models import Deployment
from workers.node.answers import Answers
from workers.node.recent_log import RecentLog

Call = Callable[[str | None], Caller]
log = logging.getLogger("tests.node_log")


@contextmanager
def node(
    there: redis.Redis, url: str, answer: Callable[[LogQuestion], LogAnswer], name: str = "cloud"
) -> Iterator[list[Any]]:
    """Takes one question from the queue of a node, as its Celery worker does; yields what it was asked."""
    asked: list[Any] = []

    def serve() -> None:
        found: Any = there.blpop([tasks.node_queue(name)], timeout=int(PATIENCE_S))
        message = json.loads(found[1])
        assert message["headers"]["task"] == tasks.NODE_LOG
        (question,) = json.loads(base64.b64decode(message["body"]))[0]
        asked.append(question)
        Answers(url).log_lines(question, answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield asked
    thread.join(PATIENCE_S)


@pytest.fixture
def recent() -> Iterator[RecentLog]:
    handler = RecentLog()
    log.addHandler(handler)
    log.setLevel("INFO")
    yield handler
    log.removeHandler(handler)


@pytest.mark.usefixtures("nodes")
def test_an_operator_reads_the_newest_lines_of_a_node(
    caller: Call, real_redis: redis.Redis, redis_url: str, recent: RecentLog
) -> None:
    log.info("Spark is up")
    log.warning("the disk is almost full")
    with node(real_redis, redis_url, recent.answer) as asked:
        page = caller("operator").get("/nodes/cloud/log?level=WARNING&search=DISK&limit=7").json()
    question = LogQuestion.model_validate(asked[0])
    assert (question.group, question.search, question.limit) == ("", "DISK", 7)
    assert (page["node"], page["matching"]) == ("cloud", 1)
    (line,) = page["lines"]
    assert (line["level"], line["logger"]) == ("WARNING", "tests.node_log")
    assert line["text"] == "the disk is almost full"
    assert line["at"] <= page["at"]


def test_the_log_at_an_element_has_the_lines_of_its_group(
    caller: Call, deployment: Deployment, real_redis: redis.Redis, redis_url: str, recent: RecentLog
) -> None:
    log.info("%s.power: claims", deployment.pk)
    log.info("%s.alerts: claims", deployment.pk)
    with node(real_redis, redis_url, recent.answer):
        page = caller("operator").get(f"/pipelines/{PIPELINE}/elements/power/log").json()
    assert [line["text"] for line in page["lines"]] == [f"{deployment.pk}.power: claims"]


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize("path", ["/nodes/cloud/log", f"/pipelines/{PIPELINE}/elements/power/log"])
def test_a_node_that_does_not_answer_or_is_down_is_named(
    caller: Call, monkeypatch: pytest.MonkeyPatch, path: str, real_redis: redis.Redis
) -> None:
    monkeypatch.setattr(node_questions, "ANSWER_S", 1)
    assert "cloud did not answer" in assert_problem(caller("operator").get(path), 503)["detail"]
    real_redis.delete(tasks.node_queue("cloud"))
    Node.objects.filter(name="cloud").update(up=False)
    problem = assert_problem(caller("operator").get(path), 503)
    assert "not up" in problem["detail"]
    assert "logs/cloud.log" in problem["next"]
    assert not real_redis.exists(tasks.node_queue("cloud")), "it is not waited for"


@pytest.mark.usefixtures("deployment")
def test_a_log_that_cannot_be_read_is_told_without_what_failed(
    caller: Call, real_redis: redis.Redis, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(question: LogQuestion) -> LogAnswer:
        raise RuntimeError(f"secret {question.search}")

    with node(real_redis, redis_url, fails):
        assert_problem(caller("operator").get("/nodes/cloud/log?search=secret"), 503)
    assert "secret" not in caplog.text


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("query", ["level=LOUD", "limit=0", "limit=501", f"search={'x' * 201}"])
def test_a_question_beyond_its_bounds_is_refused(caller: Call, query: str) -> None:
    assert_problem(caller("operator").get(f"/nodes/cloud/log?{query}"), 422)
