"""Pipelines and their elements as the dashboard shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from django.db.models import Model, OuterRef, Q, QuerySet, Subquery

from pipeline_runtime.model.ids import document_group
from webapp.alarms.selectors import worst_by_element
from webapp.backends.control_state import control_state
from webapp.handovers.facts import facts_by_element, group_facts
from webapp.handovers.homes import elsewhere, moved_groups, settled_places
from webapp.handovers.letters import settled_counts
from webapp.json_types import Allowed
from webapp.moments import iso_of, iso_of_ms
from webapp.monitoring import schemas
from webapp.monitoring.schemas import (
    ConnectorNote,
    ElementCost,
    ElementError,
    LiveElement,
    PipelineItem,
    PipelineStatus,
    ReplicaNote,
    StandbyNote,
    UpgradeFailed,
)
from webapp.operations.models import Operation
from webapp.pipelines.models import Pipeline
from webapp.pipelines.schemas import Elsewhere
from webapp.pipelines.selectors import no_element
from webapp.pipelines.shape import elements_of, goes_by_clock, groups_of, is_view, metadata_of, names_of
from webapp.placements.group_state import FOLLOW_NOTES, GroupFacts, ReplicaFacts, actions_of, status_of
from webapp.placements.models import ConnectorTrouble, Deployment
from webapp.placements.schemas import CheckpointNote, ElementAction, ElementStatus
from webapp.placements.selectors import Gaps, gaps_by_element, is_what_runs, troubles_by_element
from webapp.policies.places import places_of
from webapp.policies.schemas import UserPlaceNote

PROCESSING: frozenset[ElementStatus] = frozenset({"running", "lagging", "moving"})
"""Statuses in which batches end. In all others, how long former batches took says nothing of now."""
_OPENED = PROCESSING | {"paused", "ended", "stalled"}


class Board:
    """Pipelines with their deployments and groups, read with a fixed number of queries."""

    def __init__(self, pipelines: Iterable[Pipeline]) -> None:
        self.pipelines = list(pipelines)
        self.deployments: dict[int, Deployment] = {}
        active = Q(pipeline__in=self.pipelines, status__in=Deployment.ACTIVE)
        # A failed deployment is shown only while it is the newest, since its faults still matter then.
        known = Pipeline.objects.filter(pk__in=[pipeline.pk for pipeline in self.pipelines])
        failed = Q(pk__in=_newest(Deployment, "pipeline", known), status=Deployment.Status.FAILED)
        for row in Deployment.objects.filter(active | failed).select_related("version"):
            self.deployments[row.pipeline_id] = row
        self._failed_upgrades = _failed_upgrades(self.deployments.values())
        self._users = places_of(self.pipelines)
        self._alarms = worst_by_element(pipeline.name for pipeline in self.pipelines)
        self._settled = settled_counts([deployment.pk for deployment in self.deployments.values()])
        self._gaps = gaps_by_element([deployment.pk for deployment in self.deployments.values()])
        self._troubles = troubles_by_element([deployment.pk for deployment in self.deployments.values()])
        self.facts = group_facts(self.deployments.values(), heard=control_state().hears)
        self._moves = moved_groups([deployment.pk for deployment in self.deployments.values()])
        self._elements: dict[int, list[LiveElement]] = {}

    def deployment(self, pipeline: Pipeline) -> Deployment | None:
        return self.deployments.get(pipeline.pk)

    def elements(self, pipeline: Pipeline) -> list[LiveElement]:
        """Returns the live state of each element of the deployed version, or of the draft when none is
        deployed."""
        if pipeline.pk not in self._elements:
            self._elements[pipeline.pk] = self._read_elements(pipeline)
        return self._elements[pipeline.pk]

    def _read_elements(self, pipeline: Pipeline) -> list[LiveElement]:
        deployment = self.deployment(pipeline)
        document = deployment.version.document if deployment else pipeline.draft
        unplaced = deployment.status if deployment else None
        if deployment is not None and deployment.pk in self._failed_upgrades:
            unplaced = Deployment.Status.FAILED  # it was to be added, and no longer waits for anything
        groups = self.facts.get(deployment.pk, {}) if deployment else {}
        placed = facts_by_element(groups)
        group_of = {id: group for group, ids in groups_of(document).items() for id in ids}
        names = names_of(document)
        found = []
        for element in elements_of(document):
            group = group_of[element["id"]]
            facts = placed.get(element["id"]) or GroupFacts(group=group, deployment_status=unplaced)
            user = self._users.get((pipeline.pk, element["id"]))
            settled = self._settled.get((deployment.pk, element["id"]), 0) if deployment else 0
            shown = element_json(element, facts, names, user, settled)
            if deployment is not None:
                shown["alarm"] = self._alarms.get((pipeline.name, element["id"]))
                key = (deployment.pk, element["id"])
                _add_kept(shown["connector"], self._gaps.get(key), self._troubles.get(key))
            found.append(shown)
        return found

    def _elsewhere(self, pipeline: Pipeline, deployment: Deployment | None) -> list[Elsewhere]:
        """Returns the elements that run on another node than where they belong. Leaves out elements that are
        moving."""
        if deployment is None or deployment.status != Deployment.Status.RUNNING:
            return []
        settled = settled_places(self.facts.get(deployment.pk, {}).values())
        moves = self._moves.get(deployment.pk, {})
        return elsewhere(pipeline.draft, deployment.version.document, settled, moves)

    def item(self, pipeline: Pipeline) -> PipelineItem:
        """Returns the pipeline as lists show it."""
        deployment = self.deployment(pipeline)
        status: PipelineStatus = deployment.status if deployment else "draft"
        if status == Deployment.Status.RUNNING:
            status = running_status({element["status"] for element in self.elements(pipeline)})
        return {
            "id": pipeline.pk,
            "name": pipeline.name,
            "title": pipeline.title,
            "revision": pipeline.draft_revision,
            "status": status,
            "message": deployment.message if deployment else "",
            "deployed_version": deployment.version.number if deployment else None,
            "deployment": deployment.pk if deployment else None,
            "upgrade_failed": self._failed_upgrades.get(deployment.pk) if deployment else None,
            "differs": deployment is not None
            and not is_what_runs(
                pipeline.draft, deployment, set(map(document_group, self.facts.get(deployment.pk, {})))
            ),
            "elsewhere": self._elsewhere(pipeline, deployment),
            "updated_at": pipeline.updated_at.isoformat(),
            "updated_by": pipeline.updated_by.username if pipeline.updated_by else None,
            "description": metadata_of(pipeline.draft).get("description"),
            "elements": len(elements_of(pipeline.draft)),
        }


def _newest(rows: type[Model], of: str, parents: QuerySet[Any]) -> QuerySet[Any]:
    """Returns for each parent the id of its newest row, or null if it has none."""
    newest = rows._default_manager.filter(**{of: OuterRef("pk")}).order_by("-created_at").values("pk")[:1]
    return parents.annotate(newest=Subquery(newest)).values("newest")


def _failed_upgrades(deployments: Iterable[Deployment]) -> dict[str, UpgradeFailed]:
    """Returns {"message", "at"} of the upgrade that failed, by deployment, until something else is done with
    the deployment."""
    known = Deployment.objects.filter(pk__in=[deployment.pk for deployment in deployments])
    rows = Operation.objects.filter(
        pk__in=_newest(Operation, "deployment", known.filter(status=Deployment.Status.RUNNING)),
        kind=Operation.Kind.UPGRADE,
        status=Operation.Status.FAILED,
    )
    return {row.deployment_id: {"message": row.message, "at": iso_of(row.ended_at)} for row in rows}


def whole_board() -> Board:
    return Board(Pipeline.objects.select_related("updated_by"))


def all_pipelines() -> list[PipelineItem]:
    board = whole_board()
    return [board.item(pipeline) for pipeline in board.pipelines]


def pipeline_json(pipeline: Pipeline) -> schemas.Pipeline:
    return {**Board([pipeline]).item(pipeline), "document": pipeline.draft}


def running_status(elements: Set[ElementStatus]) -> PipelineStatus:
    """Returns one word for a deployed pipeline, from its elements' statuses."""
    if elements & {"failed", "silent", "unheard", "lagging", "stalled", "starting", "restoring"}:
        return "attention"
    at_work = elements - {"view", "ended"}
    if at_work == {"paused"}:
        return "paused"
    return "running" if at_work or "ended" not in elements else "ended"


def element_list(pipeline: Pipeline) -> list[LiveElement]:
    return Board([pipeline]).elements(pipeline)


def element_named(pipeline: Pipeline, id: str) -> LiveElement:
    """Returns one element's JSON, or raises Missing."""
    found = next((item for item in element_list(pipeline) if item["id"] == id), None)
    if found is None:
        raise no_element(pipeline.name, id)
    return found


def element_json(
    element: dict[str, Any],
    group: GroupFacts,
    names: dict[str, str],
    user: UserPlaceNote | None,
    settled: int = 0,
) -> LiveElement:
    """Returns one element as JSON. `names` are the names of the document's elements and groups. `settled`:
    how many dead letters were dropped or replayed."""
    view = is_view(element.get("type"))
    owner = None if view else group.owner
    status = dict(owner.status) if owner else {}
    rates = owner.rates if owner else {}
    if not view:
        status |= _totals(group, element["id"])
    rates = {**rates, **rates.get("elements", {}).get(element["id"], {})}
    heard = owner is not None and group.owner_is_heard
    # Unknown while its node is not heard: the last figures would look as if it still ran.
    now = {**status, **{key: rates.get(key) for key in ("rows_in_per_s", "rows_out_per_s")}} if heard else {}
    word = status_of(group)
    timed = now if word in PROCESSING else {}
    lag_rows, lag_unknown = (None, None) if view else _lag(group, now, heard)
    return {
        "id": element["id"],
        "type": element.get("type"),
        "title": names[element["id"]],
        "group": document_group(group.group),
        "group_title": names.get(document_group(group.group), document_group(group.group)),
        "status": "view" if view else word,
        "node": None if view else group.node,
        "by_clock": goes_by_clock(element),
        "epoch": owner.epoch if owner else 0,
        "seq": owner.seq if owner else 0,
        "rows_in_per_s": now.get("rows_in_per_s"),
        "rows_out_per_s": now.get("rows_out_per_s"),
        "bytes_out_per_s": _bytes_out(rates, element["id"]) if heard else None,
        "lag_rows": lag_rows,
        "lag_unknown": lag_unknown,
        "last_row_at": iso_of_ms(status.get("last_row_at_ms")),
        "next_row_due_at": iso_of_ms(now.get("next_row_due_ms")),
        "owner_since": iso_of_ms(now.get("owner_since_ms")),
        "resumed_at": None if group.resumed_at is None else group.resumed_at.isoformat(),
        "heard": heard,
        "batch_ms_p50": timed.get("batch_ms_p50"),
        "batch_ms_p95": timed.get("batch_ms_p95"),
        "batch_ms_p99": timed.get("batch_ms_p99"),
        "latency_ms_p50": timed.get("latency_ms_p50"),
        "latency_ms_p95": timed.get("latency_ms_p95"),
        "latency_ms_p99": timed.get("latency_ms_p99"),
        "rows_in_total": status.get("rows_in_total") or 0,
        "rows_out_total": status.get("rows_out_total") or 0,
        "dead_letters_total": status.get("dead_letters_total") or 0,
        "dead_letters_open": max(0, (status.get("dead_letters_total") or 0) - settled),
        "left_out_total": status.get("left_out_total") or 0,
        "state_bytes": _state_bytes(status, word),
        "latency_ms_target": status.get("latency_ms_target"),
        "cost": _cost(now),
        "state_keys": status.get("state_keys"),
        "checkpoint": _checkpoint(status),
        "paused": group.paused,
        "ended": bool(status.get("ended")),
        "follow": group.follow,
        "follow_note": FOLLOW_NOTES[group.follow],
        "standby": None if view else _standby(group),
        "error": None if view else _error(group.held or status.get("error") or _stalled(now.get("stalled"))),
        "replicas": [] if view else [_replica(replica) for replica in group.replicas],
        "handover": None if view else group.handover,
        "user": user,
        "connector": _connector(now, element["id"]),
        "alarm": None,
        "actions": _actions(group, view),
    }


def _actions(group: GroupFacts, view: bool) -> dict[ElementAction, Allowed]:
    actions = actions_of(group)
    if not view:
        return actions
    reason = "it is shown by the dashboard and runs on no node"
    return {name: {"allowed": False, "reason": reason, "note": None} for name in actions}


def _connector(now: Mapping[str, Any], id: str) -> ConnectorNote | None:
    """Returns what the element's connector says, or None."""
    said = next((each for each in now.get("connectors") or () if each["element"] == id), None)
    if said is None:
        return None
    return {
        "state": said["state"],
        "why": said["why"],
        "since": iso_of_ms(said["since_ms"] or None),
        "rows_total": said["rows_total"],
        "refused_total": said["refused_total"],
        "gaps_total": said["gaps_total"],
        "gap_rows_total": said["gap_rows_total"],
        "spool_bytes": said["spool_bytes"],
        "gap_at": None,
        "trouble": None,
    }


def _add_kept(note: ConnectorNote | None, gaps: Gaps | None, trouble: ConnectorTrouble | None) -> None:
    """Adds what control keeps, also from nodes on which the element ran before."""
    if note is None:
        return
    if gaps is not None:
        note["gaps_total"] = max(note["gaps_total"], gaps.times)
        note["gap_rows_total"] = max(note["gap_rows_total"], gaps.rows)
        note["gap_at"] = gaps.at.isoformat()
    if trouble is not None and not trouble.over:
        note["trouble"] = trouble.why


def _state_bytes(status: Mapping[str, Any], word: ElementStatus) -> int | None:
    """Returns the size of the state in bytes, or None if the replica has not opened it yet: its report says 0
    then."""
    known: int = status.get("state_bytes") or 0
    return known if known or word in _OPENED else None


def _bytes_out(rates: Mapping[str, Any], id: str) -> float | None:
    """Returns the bytes per second of an element's streams. Streams inside a group have no bytes."""
    sent = [each for source, each in rates.get("bytes_per_s", {}).items() if source.partition(".")[0] == id]
    return sum(sent) if sent else None


def _totals(group: GroupFacts, id: str) -> dict[str, int | None]:
    """Returns the totals of the replica that has read furthest, and when there was a row last: a replica that
    has just started does not know them yet.

    In a group of several elements, each element has counts of its own. Rows that were left out count for the
    whole group, and so does the last row if only Spark saw the element's rows.
    """
    copies = [replica.status for replica in group.replicas]
    own = [said["elements"][id] for said in copies if id in (said.get("elements") or {})]
    counted = ("rows_in_total", "rows_out_total", "dead_letters_total")
    found = {name: _greatest(own or copies, name) for name in counted}
    unseen = found["rows_in_total"] is None and found["rows_out_total"] is None
    found["last_row_at_ms"] = _greatest(copies if unseen or not own else own, "last_row_at_ms")
    return found | {"left_out_total": _greatest(copies, "left_out_total")}


def _greatest(said: Sequence[Mapping[str, Any]], name: str) -> int | None:
    return max((each[name] for each in said if each.get(name) is not None), default=None)


def _lag(group: GroupFacts, now: Mapping[str, Any], heard: bool) -> tuple[int | None, str | None]:
    """Returns how many rows wait for the group: the owner's figure, or else control's. If nobody knows,
    returns None and why."""
    owns = heard and group.owner is not None and group.owner.role == "owner"
    works = owns and not now.get("error") and not now.get("stalled")
    rows = now.get("lag_rows") if works else group.backlog_rows
    if rows is not None:
        return rows, None
    status = status_of(group)
    if status in ("draft", "stopped"):
        return None, None
    if status in ("deploying", "moving"):
        return None, "Fogline counts them as soon as the element runs."
    if works:
        return None, "It does not know yet where its topics in Kafka end."
    if status == "unheard":
        return None, "Its node sends no reports."
    return None, "It does not count them now, and control could not ask Kafka where its topics end."


def _cost(status: dict[str, Any]) -> ElementCost | None:
    if status.get("cpu_cores") is None:
        return None
    return {
        "cpu_cores": status["cpu_cores"],
        "batches_per_s": status["batches_per_s"],
        "rows_per_s": status["rows_per_s"],
        "wait_ms_max": status.get("wait_ms_max"),
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
    """Returns the standby that a user wants, or else the one that stays for a while after a move."""
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


def _stalled(stalled: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns in the form of an error what keeps an element from going on."""
    if not stalled:
        return None
    return {
        "message": f"It makes no progress: {stalled['why']}.",
        "safe": "Everything up to the last committed batch is kept.",
        "next": "It continues by itself when that ends.",
        "at_ms": stalled["since_ms"],
    }


def _error(error: dict[str, Any] | None) -> ElementError | None:
    if not error:
        return None
    return {
        "code": error.get("code"),
        "message": error.get("message"),
        "safe": error.get("safe"),
        "next": error.get("next"),
        "traceback": error.get("traceback"),
        "at": iso_of_ms(error.get("at_ms") or None),
        "ways": [
            {"id": way["id"], "title": way["title"], "cost": way["cost"]} for way in error.get("ways") or ()
        ],
    }
