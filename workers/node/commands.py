"""The tasks that a node carries out: short, idempotent, and safe when they come late or twice."""

from __future__ import annotations

import logging
from typing import Any

from celery import Celery

from pipeline_runtime.model.desired import read_desired
from pipeline_runtime.wire.tasks import (
    NODE_CHECKPOINT,
    NODE_LOG,
    NODE_LOOK,
    NODE_PREVIEW,
    NODE_SYNC,
    NODE_TEST,
)
from workers.node.agent import Agent
from workers.node.answers import Answers
from workers.node.connection_tests import ConnectionTests
from workers.node.previews import Previews
from workers.node.recent_log import RecentLog

log = logging.getLogger(__name__)


def register_commands(
    app: Celery,
    agent: Agent,
    answers: Answers,
    previews: Previews,
    recent: RecentLog,
    tests: ConnectionTests,
) -> None:
    @app.task(name=NODE_SYNC, shared=False)
    def sync(desired: dict[str, Any]) -> None:
        try:
            parsed = read_desired(desired)
        except ValueError as error:
            # It may come from another version of the control side. What runs goes on as it is.
            log.error("ignored a desired state that cannot be read: %s", error)
            return
        if agent.apply(parsed):
            log.info("revision %d: %d replicas wanted", parsed.revision, len(parsed.replicas))

    @app.task(name=NODE_CHECKPOINT, shared=False)
    def checkpoint(group: str) -> None:
        agent.checkpoint(group)

    @app.task(name=NODE_LOOK, shared=False)
    def look(question: dict[str, Any]) -> None:
        answers.look(question, agent.look)

    @app.task(name=NODE_LOG, shared=False)
    def log_lines(question: dict[str, Any]) -> None:
        answers.log_lines(question, recent.answer)

    @app.task(name=NODE_PREVIEW, shared=False)
    def preview(question: dict[str, Any]) -> None:
        previews.ask(question)

    @app.task(name=NODE_TEST, shared=False)
    def test(question: dict[str, Any]) -> None:
        tests.ask(question)
