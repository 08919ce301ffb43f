"""Makes the status that a replica reports."""

from __future__ import annotations

from pipeline_runtime.handover.ownership import Ownership
from pipeline_runtime.journal.records import LEFT_OUT, Boundary, Ends
from pipeline_runtime.model.desired import ElementRows, ReplicaError, ReplicaStatus, Stalled, Takeover
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.measures import percentile
from pipeline_runtime.replica.pacing import wait_ms_max
from pipeline_runtime.replica.release import OwnerRelease
from pipeline_runtime.replica.roles import Roles
from pipeline_runtime.replica.run import Run
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.topic_guard import TopicGuard


def status_of(
    spec: GroupSpec,
    state: ReplicaState,
    roles: Roles,
    ownership: Ownership,
    release: OwnerRelease,
    guard: TopicGuard,
    run: Run | None,
    *,
    state_bytes: int,
    stalled: Stalled | None,
    waits: ReplicaError | None,
) -> ReplicaStatus:
    """`run`: the run that is on, or the last one. `waits`: why an owner waits for a schema registry. The
    caller holds `state.changed`."""
    measures, view, permit = state.measures, state.view, state.permit
    batch_ms, latency_ms = list(measures.batch_ms), list(measures.latency_ms)
    return ReplicaStatus(
        group=spec.id,
        role=roles.role,
        phase="releasing" if ownership.releasing else roles.phase,
        epoch=permit.epoch if permit else view.granted,
        seq=state.local,
        fresh_from=state.state_begins.seq,
        order_id=roles.order_done,
        order_refused=state.order_refused,
        armed=ownership.armed_for if state.armed else None,
        released=release.handover,
        behind=max(0, view.last_seq - state.local),
        takeover=_takeover(state),
        rows_in_total=view.totals.rows_in,
        rows_out_total=view.totals.rows_out,
        stream_bytes_total=dict(measures.stream_bytes_total),
        elements=_element_rows(spec, state),
        dead_letters_total=view.totals.dead_letters,
        lag_rows=run.offsets.waiting_rows(_reached(state)) if run and permit else None,
        last_row_at_ms=view.last_row_at_ms,
        next_row_due_ms=run.offsets.next_due_ms(_reached(state)) if run and permit else None,
        batches_total=measures.batches_total,
        rows_processed_total=measures.rows_processed_total,
        busy_ms_total=measures.busy_ms_total,
        wait_ms_max=wait_ms_max(run is not None and run.offsets.has_sources),
        batch_ms_p50=percentile(batch_ms, 0.5),
        batch_ms_p95=percentile(batch_ms, 0.95),
        batch_ms_p99=percentile(batch_ms, 0.99),
        latency_ms_p50=percentile(latency_ms, 0.5),
        latency_ms_p95=percentile(latency_ms, 0.95),
        latency_ms_p99=percentile(latency_ms, 0.99),
        latency_ms_target=state.latency_ms(spec),
        state_bytes=state_bytes,
        state_keys=run.keys if run else None,
        stalled=stalled,
        reads=state.reads_now,
        skip=state.way_behind,
        at_work=state.granted is not None or (run is not None and run.begun and not state.connected.is_set()),
        paused=state.has_paused,
        ended=state.ended,
        retired=view.retired,
        last_output_at_ms=measures.last_output_at_ms,
        first_output_at_ms=measures.first_output_at_ms,
        owner_since_ms=roles.owner_since_ms,
        error=roles.error or guard.error or waits,
        left_out_total=sum(
            view.moved(Boundary(view.last_seq, view.last_ends, 0)).ends.get(LEFT_OUT, {}).values()
        ),
        notes=guard.notes,
    )


def _reached(state: ReplicaState) -> Ends:
    """Where the newest batch ends that this owner has begun. The caller holds `changed`."""
    view = state.view
    if (span := state.newest_span) is not None:
        return span.end.ends
    return view.moved(Boundary(view.last_seq, view.last_ends or view.start or {}, 0)).ends


def _element_rows(spec: GroupSpec, state: ReplicaState) -> dict[str, ElementRows]:
    """Returns the rows of the elements that the group has now. The caller holds `changed`."""
    members, known = {element.id for element in spec.elements}, state.view.totals.elements
    return {
        id: ElementRows(
            rows_in_total=read,
            rows_out_total=written,
            dead_letters_total=dead,
            last_row_at_ms=state.view.rows_at_ms.get(id),
        )
        for id, (read, written, dead) in known.items()
        if id in members and len(members) > 1
    }


def _takeover(state: ReplicaState) -> Takeover | None:
    """The newest takeover, with its round trips if this replica is the new owner. The caller holds
    `changed`."""
    takeover = state.view.takeover
    if takeover is None or state.permit is None or state.permit.epoch != takeover.epoch:
        return takeover
    if takeover.by != "release" or state.first_commit_requests is None:
        return takeover
    # One more for the answer that brought the RELEASE.
    return takeover.model_copy(update={"round_trips": 1 + state.first_commit_requests})
