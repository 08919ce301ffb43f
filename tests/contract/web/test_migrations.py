"""What is in the database stays there when its tables go from one app to another (decision 18), and when
figures go from columns of their own into one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from webapp.audit.models import AuditRecord, Event
from webapp.operations.models import Operation
from webapp.placements.models import Deployment
from webapp.policies.models import Policy

BEFORE = [
    ("nodes", "0005_no_credential"),
    ("pipelines", "0007_anew_from"),
    ("handovers", "0007_operation_progress"),
    ("monitoring", "0001_initial"),
]


@pytest.fixture
def before(transactional_db: None) -> Iterator[Any]:
    """The models as they were; the database is as they say."""
    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    try:
        yield executor.loader.project_state(BEFORE).apps.get_model
    finally:
        migrate()


def migrate() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def test_nothing_is_lost_when_tables_go_to_another_app(before: Any) -> None:
    user = before("accounts", "User").objects.create(username="ada")
    node = before("nodes", "Node").objects.create(name="cloud")
    pipeline = before("pipelines", "Pipeline").objects.create(name="p", updated_by=user)
    version = before("pipelines", "PipelineVersion").objects.create(pipeline=pipeline, number=1, document={})
    deployment = before("pipelines", "Deployment").objects.create(
        pipeline=pipeline, version=version, status="running", created_by=user
    )
    of_group = {"deployment": deployment, "group": "g", "node": node}
    before("pipelines", "GroupPlacement").objects.create(**of_group, spec={"version": 1}, anew_from=7)
    before("pipelines", "ExtraReplica").objects.create(**of_group, role="standby", wanted=True)
    before("pipelines", "Replica").objects.create(**of_group, role="owner", seq=9, at=timezone.now())
    before("handovers", "Operation").objects.create(kind="deploy", deployment=deployment, phase="ORDER")
    before("handovers", "Handover").objects.create(deployment=deployment, group="g", kind="migration")
    before("monitoring", "AuditRecord").objects.create(user=user, username="ada", action="x.y", target="p")
    before("monitoring", "Event").objects.create(kind="node.up", message="cloud is up.")

    migrate()

    kept = Deployment.objects.get()
    assert (kept.pk, kept.pipeline.name, kept.version.number) == (deployment.pk, "p", 1)
    assert kept.created_by is not None
    assert kept.created_by.username == "ada"
    placement = kept.placements.get()
    assert (placement.node.name, placement.spec, placement.anew_from) == ("cloud", {"version": 1}, 7)
    assert kept.extra_replicas.get().wanted
    assert kept.replicas.get().seq == 9
    assert (kept.operations.get().kind, kept.operations.get().phase) == ("deploy", "ORDER")
    assert kept.handovers.get().group == "g"
    assert AuditRecord.objects.get().action == "x.y"
    assert Event.objects.get().kind == "node.up"
    kept.pipeline.delete()  # what hangs on it still does
    assert not Operation.objects.exists()


def test_the_figures_of_a_policy_become_its_rule(transactional_db: None) -> None:
    columns = [("policies", "0001_initial")]
    executor = MigrationExecutor(connection)
    executor.migrate(columns)
    try:
        old = executor.loader.project_state(columns).apps.get_model("policies", "Policy")
        old.objects.create(name="night", kind="battery", threshold=0.2, for_s=30, mode="automatic")
    finally:
        migrate()
    policy = Policy.objects.get()
    assert (policy.name, policy.mode, policy.moves_per_hour) == ("night", "automatic", 6)
    assert policy.rule == {"kind": "battery", "threshold": 0.2, "for_s": 30}
