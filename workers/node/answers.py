"""Answers questions of the web to a node. An answer waits in Redis, under the question's id."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import redis
from pydantic import BaseModel, ValidationError

from pipeline_runtime.model.kept import KeptAnswer, KeptQuestion
from pipeline_runtime.model.node_log import LogAnswer, LogQuestion
from pipeline_runtime.wire.keys import ANSWER_LASTS_S, node_answer

log = logging.getLogger(__name__)
Question = TypeVar("Question", bound=BaseModel)


class Answers:
    """What people's rows hold, and what they have left in a state, is told to those who ask, and never to a
    log."""

    def __init__(self, redis_url: str) -> None:
        self._redis = redis.Redis.from_url(
            redis_url, socket_timeout=5, socket_connect_timeout=5, health_check_interval=10
        )

    def look(self, question: dict[str, Any], look: Callable[[KeptQuestion], KeptAnswer]) -> None:
        """Answers what an element keeps."""
        asked = _read(KeptQuestion, question)
        if asked is None:
            return
        try:
            answer = look(asked)
        except Exception as error:
            log.error("%s: its state could not be looked at: %s", asked.group, type(error).__name__)
            answer = KeptAnswer(refused="failed")
        self.give(asked.id, answer)

    def log_lines(self, question: dict[str, Any], answer: Callable[[LogQuestion], LogAnswer]) -> None:
        """Answers what this node has logged."""
        asked = _read(LogQuestion, question)
        if asked is None:
            return
        try:
            answered = answer(asked)
        except Exception as error:
            log.error("the log could not be looked at: %s", type(error).__name__)
            answered = LogAnswer(failed=True)
        self.give(asked.id, answered)

    def give(self, question: str, answer: BaseModel) -> None:
        """Hands an answer to whoever asked the question with this id."""
        key = node_answer(question)
        try:
            # Both at once, so that an answer that nobody fetches does not stay.
            pipe = self._redis.pipeline(transaction=True)
            pipe.rpush(key, answer.model_dump_json().encode())
            pipe.expire(key, ANSWER_LASTS_S)
            pipe.execute()
        except redis.RedisError as error:
            log.warning("an answer was not sent because Redis is away: %s", error)


def _read(kind: type[Question], question: dict[str, Any]) -> Question | None:
    """Returns the question, or None if it cannot be read, so that nobody can be answered."""
    try:
        return kind.model_validate(question)
    except ValidationError as error:
        log.warning("ignored a question that cannot be read: %d faults", error.error_count())
        return None
