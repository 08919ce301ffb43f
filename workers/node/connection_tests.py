"""Tries connections when the web asks, each in a fork of its own that ends with its answer."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from pipeline_runtime.connectors.config import name_of
from pipeline_runtime.model.connectors import PURPOSE_SENT, TestAnswer, TestQuestion
from pipeline_runtime.operators.connections import kinds
from pipeline_runtime.sealing import SealBroken, opened
from workers.node.asked_processes import AskedProcesses

log = logging.getLogger(__name__)

TEST_S = 12.0
AT_ONCE_MAX = 2

Give = Callable[[str, TestAnswer], None]


class ConnectionTests:
    """Answers from threads of its own, so that nothing else waits for a system that hangs."""

    def __init__(self, cluster_key: str, processes: AskedProcesses, give: Give) -> None:
        self._cluster_key = cluster_key
        self._processes = processes
        self._give = give
        self._free = threading.Semaphore(AT_ONCE_MAX)

    def ask(self, question: dict[str, Any]) -> None:
        """Takes a question, and returns at once."""
        try:
            asked = TestQuestion.model_validate(question)
        except ValidationError as error:
            log.warning("ignored a test of a connection that cannot be read: %d faults", error.error_count())
            return
        threading.Thread(target=self._answer, args=(asked,), name="connection test", daemon=True).start()

    def _answer(self, asked: TestQuestion) -> None:
        if not self._free.acquire(blocking=False):
            self._give(
                asked.id, TestAnswer(works=False, words="This node tests other connections. Try again.")
            )
            return
        try:
            answer = self._tested(asked)
        except Exception as error:
            log.error("a connection could not be tested: %s", type(error).__name__)
            answer = TestAnswer(works=False, words=f"The test itself has failed: {type(error).__name__}.")
        finally:
            self._free.release()
        self._give(asked.id, answer)

    def _tested(self, asked: TestQuestion) -> TestAnswer:
        kind = kinds().get(asked.kind)
        if kind is None:
            return TestAnswer(works=False, words=f"This node knows no connections of the kind {asked.kind}.")
        try:
            fields = json.loads(opened(asked.sealed, self._cluster_key, PURPOSE_SENT))
        except SealBroken:
            return TestAnswer(works=False, words="This node has another cluster key, so it cannot open it.")
        question = {"kind": name_of(kind), "fields": fields, "path": asked.path, "find": asked.find}
        try:
            return TestAnswer.model_validate_json(self._processes.answer("probe", question, TEST_S))
        except subprocess.TimeoutExpired:
            return TestAnswer(works=False, words=f"It did not answer within {TEST_S:.0f} s.")
