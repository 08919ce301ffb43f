"""Asks a node for an element's state, and waits for the answer.

    web  --fogline.node.look, queue node.<name>-->  node  --RPUSH fogline:kept:<id>-->  web

Nobody gets the answer to a question that comes too late: the answer expires.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import redis
from django.conf import settings
from kombu.exceptions import OperationalError
from pydantic import ValidationError

from pipeline_runtime.model.kept import KeptAnswer, KeptQuestion
from pipeline_runtime.wire.keys import kept_answer
from pipeline_runtime.wire.tasks import NODE_LOOK, node_queue
from webapp.backends.commands import sender
from webapp.problems import BackendAway

ANSWER_S = 5
SAFE = "Nothing was changed. Running pipelines keep running."


def ask_kept(node: str, **question: Any) -> KeptAnswer:
    """Takes a KeptQuestion's fields except its id. Raises BackendAway."""
    asked = KeptQuestion(id=uuid4().hex, **question)
    url = settings.FOGLINE.redis_url
    client = redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=ANSWER_S + 2)
    try:
        args = (asked.model_dump(mode="json"),)
        queue = node_queue(node)
        sender(url).send_task(NODE_LOOK, args=args, queue=queue, retry=False, ignore_result=True)
        answered: Any = client.blpop([kept_answer(asked.id)], timeout=ANSWER_S)
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
            f"The node {node} did not answer within {ANSWER_S} s.",
            safe=SAFE,
            next="Check whether the node is busy or cut off, then try again.",
        )
    try:
        return KeptAnswer.model_validate_json(answered[1])
    except ValidationError:
        raise BackendAway(
            f"The node {node} gave an answer that cannot be read.",
            safe=SAFE,
            next="Check that the node has the same version of Fogline as the control process.",
        ) from None
