"""Asks a node about an element's state, its log, or for a preview, and waits for the answer.

    web  --fogline.node.look, queue node.<name>-->  node  --RPUSH fogline:answer:<id>-->  web

Nobody gets the answer to a question that comes too late: the answer expires.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar
from uuid import uuid4

import redis
from django.conf import settings
from kombu.exceptions import OperationalError
from pydantic import BaseModel, ValidationError

from pipeline_runtime.model.connectors import TestAnswer, TestQuestion
from pipeline_runtime.model.kept import KeptAnswer, KeptQuestion
from pipeline_runtime.model.node_log import LogAnswer, LogQuestion
from pipeline_runtime.model.preview import PreviewAnswer, PreviewQuestion
from pipeline_runtime.wire.keys import node_answer
from pipeline_runtime.wire.tasks import NODE_LOG, NODE_LOOK, NODE_PREVIEW, NODE_TEST, node_queue
from webapp.backends.commands import sender
from webapp.problems import BackendAway

ANSWER_S = 5
PREVIEW_S = 12
"""A preview may take a while: its node may have to fetch a file, and to start a process."""
TEST_S = 14
"""A test of a connection takes as long as the system takes, up to 12 s."""
SAFE = "Nothing was changed. Running pipelines keep running."

Answer = TypeVar("Answer", bound=BaseModel)


class _Question(Protocol):
    id: str

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


def ask_kept(node: str, **question: Any) -> KeptAnswer:
    """Asks the node for what an element keeps. Takes a KeptQuestion's fields except its id. Raises
    BackendAway."""
    return _ask(node, NODE_LOOK, KeptQuestion(id=uuid4().hex, **question), KeptAnswer, ANSWER_S)


def ask_preview(node: str, **question: Any) -> PreviewAnswer:
    """Asks the node for a preview. Takes a PreviewQuestion's fields except its id. Raises BackendAway."""
    return _ask(node, NODE_PREVIEW, PreviewQuestion(id=uuid4().hex, **question), PreviewAnswer, PREVIEW_S)


def ask_log(node: str, **question: Any) -> LogAnswer:
    """Asks the node for its log. Takes a LogQuestion's fields except its id. Raises BackendAway."""
    return _ask(node, NODE_LOG, LogQuestion(id=uuid4().hex, **question), LogAnswer, ANSWER_S)


def ask_test(node: str, **question: Any) -> TestAnswer:
    """Asks the node to test a connection. Takes a TestQuestion's fields except its id. Raises BackendAway."""
    return _ask(node, NODE_TEST, TestQuestion(id=uuid4().hex, **question), TestAnswer, TEST_S)


def _ask(node: str, task: str, asked: _Question, kind: type[Answer], answer_s: int) -> Answer:
    url = settings.FOGLINE.redis_url
    client = redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=answer_s + 2)
    try:
        args = (asked.model_dump(mode="json"),)
        queue = node_queue(node)
        sender(url).send_task(task, args=args, queue=queue, retry=False, ignore_result=True)
        answered: Any = client.blpop([node_answer(asked.id)], timeout=answer_s)
    except (OperationalError, OSError, redis.RedisError) as error:
        raise BackendAway(
            "The question could not be sent: Redis does not answer.",
            safe=SAFE,
            next="Try again when Redis is back.",
        ) from error
    finally:
        client.close()
    if answered is None:
        raise BackendAway(
            f"The node {node} did not answer within {answer_s} s.",
            safe=SAFE,
            next="Check whether the node is busy or cut off, then try again.",
        )
    try:
        return kind.model_validate_json(answered[1])
    except ValidationError:
        raise BackendAway(
            f"The node {node} gave an answer that cannot be read.",
            safe=SAFE,
            next="Check that the node has the same version of Fogline as the control process.",
        ) from None
