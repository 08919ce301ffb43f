"""Journals that no replica of a world can tell apart, now or later, count as one journal.

Why nothing is lost by that. A replica learns about a journal only by the questions of small_world.py. Two
journals of a class (`seen_by`) answer the same to everything that this world's replicas can still ask. They
do so again when the same lines are written to both, because each part is a fold over the lines:

- `granted`, `last_seq`, `retired`, `length` and the newest token are kept as they are. They are also all that
  is needed to tell whether added lines break the law, if it holds so far. That it holds is checked on each
  new journal, line by line, before it is put into its class.
- `order_granted` of an order: protocol.py only compares it with `granted`. So it is kept as none, the newest
  grant, or one before that, which it then stays. It is kept only for orders that a replica has or may still
  get. The latter count too, since another history in which the order was given has left the same needs.
- ARMED is asked for only by the owner that has to release, the owner of the epoch before it. It is dropped
  when no replica is, or can come to be, at an epoch so low: a replica without an epoch reads `granted` first.
- `shown` to a successor changes nothing while it is of a lower epoch than the successor's. It is dropped
  below the lowest epoch for which a replica arms: one that arms later does so for an epoch above `granted`.

test_merging.py walks through smaller worlds with and without this, and compares every step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from pipeline_runtime.handover.protocol import Announcing, Armed, Arming
from tests.simulation.small_world import (
    Actor,
    Journal,
    granted,
    last_seq,
    length,
    order_granted,
    retired,
    shown,
)

NEVER = 1_000_000
"""Above every epoch."""


class Needs(NamedTuple):
    """What replicas may still ask about, beyond what is kept in any case."""

    armed: int = NEVER  # the lowest epoch for which a replica arms
    epoch: int = NEVER  # the lowest epoch that a replica has, or has begun to claim
    orders: frozenset[str] = frozenset()


def needs_of(actor: Actor) -> Needs:
    state, orders = actor.state, {f"{actor.name}{left}" for left in range(actor.tries)}
    if (order := getattr(state, "order", None)) is not None:
        orders.add(order.id)
    if actor.arms:
        orders.add(f"to {actor.name}")
    begun = getattr(state, "granted", NEVER - 1) + 1
    armed = state.epoch if isinstance(state, Arming | Announcing | Armed) else NEVER
    return Needs(armed, getattr(state, "epoch", begun), frozenset(orders))


def of_all(needs: Iterable[Needs]) -> Needs:
    all_needs = list(needs)
    return Needs(
        min(item.armed for item in all_needs),
        min(item.epoch for item in all_needs),
        frozenset().union(*(item.orders for item in all_needs)),
    )


def seen_by(needs: Needs, journal: Journal) -> Hashable:
    """Equal for two journals that no replica with at most these needs can tell apart."""
    newest = granted(journal)
    lowest = min(needs.epoch, newest + 1)
    return (
        newest,
        last_seq(journal),
        retired(journal),
        length(journal),
        next((line.token for line in reversed(journal) if line.kind == "RELEASE"), None),
        frozenset(
            (order, epoch == newest)
            for order in needs.orders
            if (epoch := order_granted(journal, order)) is not None
        ),
        frozenset(line for line in journal if line.kind == "ARMED" and line.epoch > lowest),
        frozenset((shows, seq) for shows, seq in shown(journal) if shows.granted >= needs.armed),
    )
