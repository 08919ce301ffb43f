"""One reading for the dashboards costs the database as much as is shown, and not as much as was ever
stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, models
from django.db.models.signals import post_init
from django.utils import timezone

from webapp.handovers.models import Handover
from webapp.handovers.selectors import RECENT, recent_handovers
from webapp.monitoring.board import whole_board
from webapp.monitoring.live_state import read_state
from webapp.operations.models import Operation
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.placements.models import Deployment

BEGUN = {"start": "warm", "bytes": None, "had": False}


@contextmanager
def loaded() -> Iterator[Counter[type[models.Model]]]:
    """How many rows of each model were made into objects."""
    rows: Counter[type[models.Model]] = Counter()

    def count(sender: type[models.Model], **_: Any) -> None:
        rows[sender] += 1

    post_init.connect(count)
    try:
        yield rows
    finally:
        post_init.disconnect(count)


def deployed_before(deployment: Deployment, times: int, status: str = "undeployed") -> Deployment:
    made = deployment
    for _ in range(times):
        made = Deployment.objects.create(
            pipeline=deployment.pipeline, version=deployment.version, status=status
        )
        Operation.objects.create(kind="deploy", deployment=made, status="done", ended_at=timezone.now())
    return made


def test_it_grows_with_what_runs_not_with_what_ran(deployment: Deployment) -> None:
    deployed_before(deployment, RECENT)
    with loaded() as before:
        read_state()
    deployed_before(deployment, RECENT, "failed")
    deployed_before(deployment, RECENT)
    with loaded() as after:
        read_state()
    for model in (Deployment, PipelineVersion, Pipeline):
        assert after[model] == before[model]


@pytest.mark.parametrize(
    ("active", "later", "shown"),
    [
        (True, [], "running"),
        (True, ["failed"], "running"),
        (False, ["failed"], "failed"),
        (False, ["failed", "undeployed"], "draft"),
        (False, ["undeployed", "failed"], "failed"),
    ],
)
def test_a_failed_deployment_is_shown_while_it_is_the_newest(
    active: bool, later: list[str], shown: str, deployment: Deployment
) -> None:
    if not active:
        Deployment.objects.update(status="undeployed")
    for status in later:
        deployed_before(deployment, 1, status)
    board = whole_board()
    [pipeline] = board.pipelines
    assert board.item(pipeline)["status"] == shown


@pytest.mark.parametrize(
    "rows",
    [
        lambda model: model.objects.all()[:20],
        lambda model: model.objects.filter(ended_at__isnull=False).order_by("-ended_at")[:20],
    ],
)
@pytest.mark.parametrize("model", [Handover, Operation])
def test_the_newest_are_found_without_sorting_all(model: Any, rows: Any, transactional_db: None) -> None:
    assert "TEMP B-TREE" not in rows(model).explain()


def test_a_handover_that_ends_while_they_are_read_has_ended(deployment: Deployment) -> None:
    """Else a dashboard would be sent its end first and then its last phase, and show that for good."""
    row = {"deployment": deployment, "group": "watch", "element": "watch", "begun": BEGUN}
    handover = Handover.objects.create(**row, phase="FINISH")

    def end_it(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        if sql.startswith("SELECT"):
            Handover.objects.update(outcome="done", ended_at=timezone.now())
        return answer

    with connection.execute_wrapper(end_it):
        found = recent_handovers()
    assert [(each["id"], each["outcome"]) for each in found] == [(str(handover.pk), "done")]


def test_what_ended_last_is_read_however_long_ago_it_began(deployment: Deployment) -> None:
    row = {"deployment": deployment, "group": "watch", "element": "watch", "outcome": "done", "begun": BEGUN}
    long, *_ = [Handover.objects.create(ended_at=timezone.now(), **row) for _ in range(RECENT + 1)]
    assert str(long.pk) not in {each["id"] for each in recent_handovers()}
    Handover.objects.filter(pk=long.pk).update(ended_at=timezone.now())
    assert str(long.pk) in {each["id"] for each in recent_handovers()}
