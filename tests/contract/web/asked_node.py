"""A node that is asked one question, as its Celery worker is."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import redis
from pydantic import BaseModel

from pipeline_runtime.wire.tasks import node_queue
from tests.waiting import PATIENCE_S, wait_until

Question = TypeVar("Question", bound=BaseModel)


@contextmanager
def asked_node(
    there: redis.Redis, task: str, kind: type[Question], answer: Callable[[dict[str, Any]], None], name: str
) -> Iterator[list[Question]]:
    """Takes one question from the queue of that node, and has it answered; yields what it was asked."""
    asked: list[Question] = []

    def serve() -> None:
        # A blocking command would wait no longer than the client's socket.
        found = wait_until(lambda: there.lpop(node_queue(name)), f"a question to {name}")
        message = json.loads(found)
        assert message["headers"]["task"] == task
        (question,) = json.loads(base64.b64decode(message["body"]))[0]
        asked.append(kind.model_validate(question))
        answer(question)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield asked
    thread.join(PATIENCE_S)
