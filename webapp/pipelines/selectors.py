"""Reading pipelines: their JSON for the API and the live view."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Set
from datetime import UTC, datetime
from typing import Any

from django.db.models import Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KT

from webapp.handovers.models import Handover, Operation
from webapp.monitoring.control_state import control_state
from webapp.nodes.models import Node
from webapp.pipelines import schemas
from webapp.pipelines.group_state import (
    FOLLOW_NOTES,
    GroupFacts,
    NodeFacts,
    ReplicaFacts,
    StandbyFacts,
    actions_of,
    status_of,
)
from webapp.pipelines.models import (
    Deployment,
    ExtraReplica,
    GroupPlacement,
    Pipeline,
    PipelineVersion,
    Replica,
)
from webapp.pipelines.pins import elsewhere, with_pins_of
from webapp.pipelines.schemas import (
    CheckpointNote,
    ElementError,
    ElementStatus,
    Elsewhere,
    LiveElement,
    PipelineItem,
    PipelineStatus,
    ReplicaNote,
    StandbyNote,
    UpgradeFailed,
    VersionItem,
)
from webapp.pipelines.shape import elements_of, groups_of, is_view, names_of
from webapp.problems import Missing


def pipeline_named(name: str, *, for_update: bool = False) -> Pipeline:
    rows = Pipeline.objects.select_related("updated_by")
    pipeline = (rows.select_for_update(of=("self",)) if for_update else rows).filter(name=name).first()
    if pipeline is None:
        raise Missing(f'There is no pipeline "{name}".', next="See the list of pipelines.")
    return pipeline


def version_of(pipeline: Pipeline, number: int) -> PipelineVersion:
    version = pipeline.versions.select_related("created_by").filter(number=number).first()
    if version is None:
        raise Missing(f'"{pipeline.name}" has no version {number}.')
    return version


def active_deployment(pipeline: Pipeline) -> Deployment | None:
    return (
        pipeline.deployments.filter(status__in=Deployment.ACTIVE)
        .select_related("version", "pipeline")
        .first()
    )


def document_key(document: Any) -> str:
    """Equal for documents that would run alike: where the editor drew things does not count."""
    if isinstance(document, dict):
        document = json.loads(json.dumps(document))
        spec = document.get("spec")
        for items in (spec.get("elements"), spec.get("groups")) if isinstance(spec, dict) else ():
            for item in items if isinstance(items, list) else ():
                if isinstance(item, dict):
                    item.pop("ui", None)
        if isinstance(spec, dict):
            for empty in [key for key, value in spec.items() if value in ([], None)]:
                spec.pop(empty)
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def is_what_runs(
    document: dict[str, Any], deployment: Deployment, groups: Collection[str] | None = None
) -> bool:
    """Whether deploying the document would change nothing. `groups`: those with a node; None: asked for."""
    if groups is None:
        groups = set(deployment.placements.values_list("group", flat=True))
    deployed = with_pins_of(document, deployment.version.document, groups)
    return document_key(document) == document_key(deployed)


# --- many at once -------------------------------------------------------------------------------
class Board:
    """Pipelines with their deployments and groups, read with a fixed number of queries."""

    def __init__(self, pipelines: Iterable[Pipeline]) -> None:
        self.pipelines = list(pipelines)
        self.deployments: dict[int, Deployment] = {}
        active = Q(pipeline__in=self.pipelines, status__in=Deployment.ACTIVE)
        # A failed deployment is shown only while it is the newest: its faults are still to be seen.
        known = Pipeline.objects.filter(pk__in=[pipeline.pk for pipeline in self.pipelines])
        failed = Q(pk__in=_newest(Deployment, "pipeline", known), status=Deployment.Status.FAILED)
        for row in Deployment.objects.filter(active | failed).select_related("version"):
            self.deployments[row.pipeline_id] = row
        self._failed_upgrades = _failed_upgrades(self.deployments.values())
        self.facts = group_facts(self.deployments.values(), heard=control_state().hears)
        self._elements: dict[int, list[LiveElement]] = {}

    def deployment(self, pipeline: Pipeline) -> Deployment | None:
        return self.deployments.get(pipeline.pk)

    def elements(self, pipeline: Pipeline) -> list[LiveElement]:
        """Live state of each element: of the deployed version, or of the draft when none is deployed."""
        if pipeline.pk not in self._elements:
            self._elements[pipeline.pk] = self._read_elements(pipeline)
        return self._elements[pipeline.pk]

    def _read_elements(self, pipeline: Pipeline) -> list[LiveElement]:
        deployment = self.deployment(pipeline)
        document = deployment.version.document if deployment else pipeline.draft
        status = deployment.status if deployment else None
        groups = self.facts.get(deployment.pk, {}) if deployment else {}
        group_of = {id: group for group, ids in groups_of(document).items() for id in ids}
        names = names_of(document)
        found = []
        for element in elements_of(document):
            group = group_of[element["id"]]
            facts = groups.get(group) or GroupFacts(group=group, deployment_status=status)
            found.append(element_json(element, facts, names))
        return found

    def _elsewhere(self, pipeline: Pipeline, deployment: Deployment | None) -> list[Elsewhere]:
        """What runs elsewhere than the draft pins it to, but for what is being moved."""
        if deployment is None or deployment.status != Deployment.Status.RUNNING:
            return []
        settled = {
            group.group: group.node
            for group in self.facts.get(deployment.pk, {}).values()
            if group.node is not None and group.handover is None
        }
        return elsewhere(pipeline.draft, deployment.version.document, settled)

    def item(self, pipeline: Pipeline) -> PipelineItem:
        """The pipeline as it stands in lists."""
        deployment = self.deployment(pipeline)
        status: PipelineStatus = deployment.status if deployment else "draft"
        if status == Deployment.Status.RUNNING:
            status = running_status({element["status"] for element in self.elements(pipeline)})
        metadata = pipeline.draft.get("metadata")
        return {
            "name": pipeline.name,
            "revision": pipeline.draft_revision,
            "status": status,
            "message": deployment.message if deployment else "",
            "deployed_version": deployment.version.number if deployment else None,
            "deployment": deployment.pk if deployment else None,
            "upgrade_failed": self._failed_upgrades.get(deployment.pk) if deployment else None,
            "differs": deployment is not None
            and not is_what_runs(pipeline.draft, deployment, self.facts.get(deployment.pk, {})),
            "elsewhere": self._elsewhere(pipeline, deployment),
            "updated_at": pipeline.updated_at.isoformat(),
            "updated_by": pipeline.updated_by.username if pipeline.updated_by else None,
            "description": metadata.get("description") if isinstance(metadata, dict) else None,
            "elements": len(elements_of(pipeline.draft)),
        }


def _newest(rows: type[Model], of: str, parents: QuerySet[Any]) -> QuerySet[Any]:
    """Of each parent the newest row's id, to look it up by; null: it has none."""
    newest = rows._default_manager.filter(**{of: OuterRef("pk")}).order_by("-created_at").values("pk")[:1]
    return parents.annotate(newest=Subquery(newest)).values("newest")


def _failed_upgrades(deployments: Iterable[Deployment]) -> dict[str, UpgradeFailed]:
    """By deployment: {"message", "at"} of the upgrade that failed, until something else is done with it."""
    known = Deployment.objects.filter(pk__in=[deployment.pk for deployment in deployments])
    rows = Operation.objects.filter(
        pk__in=_newest(Operation, "deployment", known.filter(status=Deployment.Status.RUNNING)),
        kind=Operation.Kind.UPGRADE,
        status=Operation.Status.FAILED,
    )
    return {row.deployment_id: {"message": row.message, "at": _iso(row.ended_at)} for row in rows}


def whole_board() -> Board:
    return Board(Pipeline.objects.select_related("updated_by"))


# --- pipelines ----------------------------------------------------------------------------------
def all_pipelines() -> list[PipelineItem]:
    board = whole_board()
    return [board.item(pipeline) for pipeline in board.pipelines]


def pipeline_json(pipeline: Pipeline) -> schemas.Pipeline:
    return {**Board([pipeline]).item(pipeline), "document": pipeline.draft}


def version_item(version: PipelineVersion) -> VersionItem:
    return {
        "number": version.number,
        "note": version.note,
        "created_at": version.created_at.isoformat(),
        "created_by": version.created_by.username if version.created_by else None,
    }


def version_json(version: PipelineVersion) -> schemas.PipelineVersion:
    return {**version_item(version), "document": version.document}


# --- elements -----------------------------------------------------------------------------------
def node_facts(heard: bool = True) -> dict[str, NodeFacts]:
    owned = Counter(
        GroupPlacement.objects.filter(deployment__status__in=Deployment.ACTIVE, role="owner").values_list(
            "node_id", flat=True
        )
    )
    return {
        node.name: NodeFacts(node.name, node.up, node.ready, node.cordoned, owned[node.pk], heard)
        for node in Node.objects.all()
    }


def busy_nodes() -> set[str]:
    """Those that run a query: their Java is warm."""
    return set(Replica.objects.exclude(role="stopped").values_list("node__name", flat=True))


def group_facts(deployments: Iterable[Deployment], heard: bool = True) -> dict[str, dict[str, GroupFacts]]:
    """By deployment, then by group; a group without a placement is not in it. `heard`: the nodes are."""
    by_id = {deployment.pk: deployment for deployment in deployments}
    nodes = node_facts(heard)
    replicas: dict[tuple[str, str], list[ReplicaFacts]] = {}
    for row in Replica.objects.filter(deployment__in=by_id).select_related("node").order_by("node__name"):
        replicas.setdefault((row.deployment_id, row.group), []).append(
            ReplicaFacts(row.node.name, row.role, row.epoch, row.seq, row.status, row.rates)
        )
    standbys: dict[tuple[str, str], list[StandbyFacts]] = {}
    extras = ExtraReplica.objects.filter(deployment__in=by_id, role="standby").select_related("node")
    for extra in extras.order_by("-wanted", "node__name"):
        standbys.setdefault((extra.deployment_id, extra.group), []).append(
            StandbyFacts(extra.node.name, extra.wanted)
        )
    handovers = {
        (row.deployment_id, row.group): str(row.pk)
        for row in Handover.objects.filter(deployment__in=by_id, outcome__isnull=True)
    }
    found: dict[str, dict[str, GroupFacts]] = {id: {} for id in by_id}
    # Of the spec, which is large, only what is shown is parsed.
    placements = GroupPlacement.objects.filter(deployment__in=by_id).defer("spec").select_related("node")
    for placement in placements.annotate(follow=KT("spec__follow")):
        key = (placement.deployment_id, placement.group)
        found[placement.deployment_id][placement.group] = GroupFacts(
            group=placement.group,
            deployment_status=by_id[placement.deployment_id].status,
            node=placement.node.name,
            role=placement.role,
            paused=placement.paused_at is not None,
            retire=placement.retire,
            follow=placement.follow or "exact",
            anew_from=placement.anew_from,
            handover=handovers.get(key),
            replicas=tuple(replicas.get(key, ())),
            standbys=tuple(standbys.get(key, ())),
            nodes=nodes,
        )
    return found


def running_status(elements: Set[ElementStatus]) -> PipelineStatus:
    """A deployed pipeline in one word, from its elements' statuses."""
    if elements & {"failed", "silent", "unheard", "lagging"}:
        return "attention"
    at_work = elements - {"view", "ended"}
    if at_work == {"paused"}:
        return "paused"
    return "running" if at_work or "ended" not in elements else "ended"


def element_list(pipeline: Pipeline) -> list[LiveElement]:
    return Board([pipeline]).elements(pipeline)


def element_named(pipeline: Pipeline, id: str) -> LiveElement:
    """One element's JSON, or Missing."""
    found = next((item for item in element_list(pipeline) if item["id"] == id), None)
    if found is None:
        raise Missing(f'There is no element "{id}" in the pipeline "{pipeline.name}".')
    return found


def element_json(element: dict[str, Any], group: GroupFacts, names: dict[str, str]) -> LiveElement:
    """`names`: of the document's elements and groups."""
    view = is_view(element.get("type"))
    owner = None if view else group.owner
    status = dict(owner.status) if owner else {}
    rates = owner.rates if owner else {}
    # In a group of several each element has counts of its own; the rest is the group's.
    status |= status.get("elements", {}).get(element["id"], {})
    rates = {**rates, **rates.get("elements", {}).get(element["id"], {})}
    heard = owner is not None and group.owner_is_heard
    # Unknown while its node is not heard: the last ones would look as if it still ran.
    now = {**status, **{key: rates.get(key) for key in ("rows_in_per_s", "rows_out_per_s")}} if heard else {}
    actions = actions_of(group)
    if view:
        reason = "the dashboard itself shows it, no node runs it"
        actions = {name: {"allowed": False, "reason": reason, "note": None} for name in actions}
    return {
        "id": element["id"],
        "type": element.get("type"),
        "title": names[element["id"]],
        "group": group.group,
        "group_title": names.get(group.group, group.group),
        "status": "view" if view else status_of(group),
        "node": None if view else group.node,
        "epoch": owner.epoch if owner else 0,
        "seq": owner.seq if owner else 0,
        "rows_in_per_s": now.get("rows_in_per_s"),
        "rows_out_per_s": now.get("rows_out_per_s"),
        "lag_rows": now.get("lag_rows") or 0 if heard else None,
        "batch_ms_p50": now.get("batch_ms_p50"),
        "batch_ms_p95": now.get("batch_ms_p95"),
        "batch_ms_p99": now.get("batch_ms_p99"),
        "latency_ms_p50": now.get("latency_ms_p50"),
        "latency_ms_p95": now.get("latency_ms_p95"),
        "latency_ms_p99": now.get("latency_ms_p99"),
        "rows_in_total": status.get("rows_in_total") or 0,
        "rows_out_total": status.get("rows_out_total") or 0,
        "dead_letters_total": status.get("dead_letters_total") or 0,
        "state_bytes": status.get("state_bytes") or 0,
        "checkpoint": _checkpoint(status),
        "paused": group.paused,
        "ended": bool(status.get("ended")),
        "follow": group.follow,
        "follow_note": FOLLOW_NOTES[group.follow],
        "standby": None if view else _standby(group),
        "error": _error(status.get("error")),
        "replicas": [] if view else [_replica(replica) for replica in group.replicas],
        "handover": None if view else group.handover,
        "actions": actions,
    }


def _replica(replica: ReplicaFacts) -> ReplicaNote:
    return {
        "node": replica.node,
        "role": replica.role,
        "phase": replica.status.get("phase", ""),
        "epoch": replica.epoch,
        "seq": replica.seq,
        "behind": replica.status.get("behind") or 0,
        "armed": replica.status.get("armed"),
    }


def _standby(group: GroupFacts) -> StandbyNote | None:
    """The one that a user wants, else the one that is kept for a while after a move."""
    if not group.standbys:
        return None
    standby = group.standbys[0]
    replica = group.replica_on(standby.node)
    following = replica is not None and replica.role == "standby"
    return {
        "node": standby.node,
        "behind": replica.status.get("behind") if replica is not None and following else None,
        "armed": replica is not None and replica.status.get("armed") is not None,
        "wanted": standby.wanted,
    }


def _checkpoint(status: dict[str, Any]) -> CheckpointNote | None:
    if status.get("checkpoint_seq") is None:
        return None
    return {
        "seq": status["checkpoint_seq"],
        "at": iso_of_ms(status.get("checkpoint_at_ms")),
        "bytes": status.get("checkpoint_bytes"),
        "where": list(status.get("checkpoint_where") or ()),
    }


def _error(error: dict[str, Any] | None) -> ElementError | None:
    if not error:
        return None
    return {
        "message": error.get("message"),
        "safe": error.get("safe"),
        "next": error.get("next"),
        "traceback": error.get("traceback"),
        "at": iso_of_ms(error.get("at_ms")),
    }


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def iso_of_ms(time_ms: int | None) -> str | None:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat() if time_ms else None
