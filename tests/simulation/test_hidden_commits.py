"""A transaction that was left open hides everything that was committed after its first record.

So the second read of a claim has to go to the journal's end, and not to where committed records end now.
"""

from __future__ import annotations

from random import Random

import pytest

from pipeline_runtime.handover.protocol import State
from pipeline_runtime.journal.records import Arm, Boundary, Claim, Commit
from pipeline_runtime.journal.view import JournalBroken
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch, Seq
from tests.simulation.actors import LawBroken, ReplicaActor
from tests.simulation.broker import TRANSACTION_STEPS_MAX, Broker
from tests.simulation.memory import Desired, fold
from tests.simulation.mutants import Rules
from tests.simulation.network import Network
from tests.simulation.schedules import Judge


def with_a_hidden_commit() -> Broker:
    """Returns a broker where epoch 3 owns and has committed seq 1. Before that, a successor for epoch 2 was
    paused in the middle of its ARMED, long after it was told to arm."""
    broker = Broker()
    for epoch in (1, 2, 3):
        owner = broker.initialise(epoch)
        broker.write(owner, (Claim(Epoch(epoch), f"order {epoch}", "origin"),))
        broker.commit(owner)
    paused = broker.initialise(2)
    broker.write(paused, (Arm(Epoch(2), "old/1", "old"),))
    batch = Boundary(Seq(1), {"in": 5}, 0)
    broker.write(owner, (Commit(Epoch(3), batch, marks={"state": fold(0, batch)}),))
    broker.commit(owner)
    return broker


def claim(broker: Broker, *, ends_at_the_open_transaction: bool) -> Judge:
    network = Network(Random(1), broker)
    target = ReplicaActor("target", network, network.random, Rules(), lambda who, what, *places: None)
    if ends_at_the_open_transaction:

        def stable_end(state: State) -> int:
            return broker.stable_end()

        target.end_of_journal = stable_end
    target.want(Desired(order=ClaimOrder(id="restore", over=Epoch(3))))
    judge = Judge(broker)
    while network.now < 3 * TRANSACTION_STEPS_MAX:
        network.now += 1
        broker.now = network.now
        broker.expire()
        network.deliver()
        target.act()
        judge.look()
    return judge


def test_a_claimant_waits_until_it_sees_the_hidden_commit() -> None:
    judge = claim(with_a_hidden_commit(), ends_at_the_open_transaction=False)
    assert judge.epoch == 4
    assert judge.seq > 1


def test_one_that_does_not_wait_is_found_out() -> None:
    with pytest.raises((LawBroken, JournalBroken), match=r"seq 1 .*follows.* 1"):
        claim(with_a_hidden_commit(), ends_at_the_open_transaction=True)
