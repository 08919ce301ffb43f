"""Copies that are tidied away, and one that a user keeps at that moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from webapp.nodes.models import Node
from webapp.placements.models import ExtraReplica, GroupPlacement
from workers.control.context import ControlContext
from workers.control.handovers import standbys
from workers.control.process import KEPT_AFTER_END, _is_forgotten


def test_a_standby_that_is_kept_just_when_its_time_is_over_stays(
    context: ControlContext,
    deployed: Callable[..., GroupPlacement],
    nodes: dict[str, Node],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placement = deployed("power", "edge-a")
    _, kept = [
        ExtraReplica.objects.create(
            deployment=placement.deployment,
            group="power",
            node=nodes[name],
            role="standby",
            until=timezone.now(),
        )
        for name in ("edge-b", "edge-c")
    ]

    def keep(*_: Any) -> None:
        ExtraReplica.objects.filter(pk=kept.pk).update(wanted=True, until=None)

    monkeypatch.setattr(standbys, "announce", keep)  # comes between the two
    standbys.tidy_copies(context)
    assert list(ExtraReplica.objects.values_list("pk", flat=True)) == [kept.pk]


def test_checkpoints_of_what_was_removed_are_kept_for_a_while(
    deployed: Callable[..., GroupPlacement],
) -> None:
    deployment = deployed("power", "edge-a").deployment
    now_ms, grace_ms = int(time.time() * 1000), KEPT_AFTER_END.total_seconds() * 1000
    long_ago_ms = now_ms - int(grace_ms) - 60_000
    assert not _is_forgotten(f"{deployment.pk}.power", long_ago_ms)
    deployment.removed = ["power"]
    deployment.save()
    assert _is_forgotten(f"{deployment.pk}.power", long_ago_ms)
    assert not _is_forgotten(f"{deployment.pk}.power", now_ms)
