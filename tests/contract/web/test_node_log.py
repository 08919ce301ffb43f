"""A node's log: the web asks the node, over a real Redis."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import redis

from pipeline_runtime.model.node_log import LogAnswer, LogQuestion
from pipeline_runtime.wire import tasks
from tests.contract.web.asked_node import asked_node
from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_permissions import assert_problem
from webapp.backends import node_questions
from webapp.nodes.models import Node
from webapp.placements.models import Deployment
from workers.node.answers import Answers
from workers.node.recent_log import RecentLog

Call = Callable[[str | None], Caller]
log = logging.getLogger("tests.node_log")


def node(
    there: redis.Redis, url: str, answer: Callable[[LogQuestion], LogAnswer]
) -> AbstractContextManager[list[LogQuestion]]:
    def tell(question: dict[str, Any]) -> None:
        Answers(url).log_lines(question, answer)

    return asked_node(there, tasks.NODE_LOG, LogQuestion, tell, "cloud")


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
    [question] = asked
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
