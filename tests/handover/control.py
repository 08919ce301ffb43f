"""The control side of the handover tests. It orders and notices what died, but never decides who owns.

move a live handover: succeed to the target, release to the owner claim a forced change, whatever the owner
does recover after a fault: until one node owns again and no order is open restock every node runs again and
follows, so that the next handover has a target
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Literal
from uuid import uuid4

from pipeline_runtime.model.desired import ReplicaStatus, Role
from tests.handover.nodes import PATIENCE_S, CommandFailed, Node, NodeGone, Reached
from tests.handover.rig import Group, Rig

Fault = Literal["kill", "stop", "cut", "broker"]
Loss = Literal["kill", "freeze", "cut", "reset"]

BEFORE_CUT = ("initialised", "armed")
_SILENCE_S = 4.0  # an owner that is away for so long is replaced
_REORDER_S = 3.0


@dataclass
class Plan:
    """What has to go wrong, where and how, and whether it has."""

    victim: Node
    point: str
    fault: Fault
    done: bool = False


class Control:
    def __init__(self, rig: Rig, group: Group) -> None:
        self.rig = rig
        self.group = group
        self.cut: set[str] = set()  # nodes whose line is cut
        self.started: set[str] = set()  # nodes whose process has a replica of the group
        self.ordered: dict[str, str] = {}  # node -> its newest order to claim
        self.log: Callable[[str], None] = lambda message: None

    # --- what it sees

    @property
    def nodes(self) -> list[Node]:
        return list(self.rig.nodes.values())

    def reachable(self, node: Node) -> bool:
        return node.serving and node.name not in self.cut

    def status(self, node: Node) -> ReplicaStatus | None:
        return node.status(self.group.spec) if node.serving else None

    def owner(self) -> Node | None:
        """Returns the node to which the journal has granted the newest epoch, if it can be reached and
        reports so too."""
        found = [node for node in self.nodes if self.reachable(node) and node.owns(self.group.spec)]
        if not found:
            return None
        granted = self.group.journal.read().granted
        return next((node for node in found if self._epoch(node) == granted), None)

    def _epoch(self, node: Node) -> int:
        status = self.status(node)
        return status.epoch if status is not None else 0

    def standbys(self) -> list[Node]:
        return [node for node in self.nodes if self.reachable(node) and node.follows(self.group.spec)]

    def followers(self) -> list[Node]:
        """Returns the standbys that have little left to follow."""
        return [node for node in self.standbys() if _follows_closely(self.status(node))]

    # --- what it orders

    def begin(self, owner: Node) -> None:
        """Starts a new group: one node owns, the others follow."""
        for node in self.nodes:
            self._start(node)
        self._order_claim(owner, over=0)

        def owns() -> bool:
            assert not self._has_stopped(owner), f"{owner.name}: {self.status(owner)}"
            return self.owner() is owner

        self.rig.wait(owns, f"{owner.name} to own", PATIENCE_S)

    def move(self, target: Node, plan: Plan | None = None) -> bool:
        """Does a live migration. Returns False if it was cancelled and the owner is the old one."""
        origin = self.owner()
        assert origin is not None
        handover = uuid4().hex
        self._arm_fault(plan)
        self._tell(target, "succeed", plan, handover=handover)
        # The owner may be in doubt, and learn only now that another node has replaced it.
        came = self._until(plan, lambda: self._is_armed(target, handover) or self._has_stopped(target))
        if not came or self._has_stopped(target):
            self.log(f"cancelled: {target.name} did not arm")
            self.recover(plan)
            return False
        self._tell(origin, "release", plan, handover=handover)
        # It may also lose the group to a claimant whose line was cut until just now.
        done = self._until(plan, lambda: self._owns_by(target, handover) or self._has_stopped(origin))
        if done:
            self._await_fault(plan)
        self.recover(plan)
        return True

    def claim(self, target: Node, plan: Plan | None = None) -> None:
        """Does a restoration while the owner lives, which is fenced."""
        self._arm_fault(plan)
        before = granted = self.group.journal.read().granted
        self._order_claim(target, granted, plan)

        def owns() -> bool:
            nonlocal granted
            law = self.group.journal.read()
            if law.granted > granted and law.owners[-1] != target.name:
                # An owner in doubt has claimed again meanwhile, so the order comes one epoch too late.
                granted = law.granted
                self._order_claim(target, granted)
            return self._owns_since(target, before)

        if self._until(plan, owns):
            self._await_fault(plan)
        self.recover(plan)

    def recover(self, plan: Plan | None) -> None:
        """Waits until one reachable node owns and goes on, and no order is open."""
        self._settle(plan)
        self._withdraw_orders()
        while self.owner() is None:  # the claimant had just claimed when its order was withdrawn
            self._settle(None)
            self._withdraw_orders()

    def _settle(self, plan: Plan | None) -> None:
        """Lets a node claim in place of an owner that is away."""
        since = order_at = monotonic()
        seq = self.group.journal.read().seq

        def settled() -> bool:
            nonlocal order_at
            law = self.group.journal.read()
            if self.owner() is not None:
                return law.seq > seq
            self._stock()
            candidates = self._best_standbys()
            away = monotonic() - since >= self._silence_s(plan)
            if away and candidates and monotonic() >= order_at:
                order_at = monotonic() + _REORDER_S
                self._order_claim(candidates[0], law.granted)
            return False

        self.rig.wait(settled, "one owner", PATIENCE_S)

    def lose_owner(self, how: Loss) -> None:
        """Loses the owner at a random moment. Another node is told to claim."""
        owner = self.owner()
        assert owner is not None
        self.log(f"{how}: {owner.name}, the owner")
        if how == "kill":
            owner.kill()
            self.rig.wait(lambda: not owner.alive, f"{owner.name} to die", PATIENCE_S)
        elif how == "freeze":
            owner.freeze()
        else:
            self.rig.proxy(owner).cut(how)
            self.cut.add(owner.name)
        self.recover(None)

    def strike(self, plan: Plan) -> None:
        """Waits for the fault of a node that is told nothing. Another node may be told to claim."""
        plan.victim.news.reached.clear()
        plan.victim.tell("fault", point=plan.point, fault=plan.fault)  # it may not live to answer
        self.rig.wait(lambda: self._happened(plan) is not None, str(plan), PATIENCE_S)
        self._carry_out(plan)
        self.recover(plan)

    def restock(self, standbys: int = 1) -> None:
        """Heals lines, wakes frozen nodes, starts dead ones, and starts replicas again that gave way. Returns
        when enough nodes follow closely for the next handover."""
        if self.heal():
            # A claimant whose line was cut goes on with its claim, and may take the group from its owner.
            self.recover(None)
        for node in self.nodes:
            if not node.alive:
                self.started.discard(node.name)
                node.bury()
                node.launch()

        def stocked() -> bool:
            self._stock()
            if self.owner() is None:
                # A claim that was being committed when its order was withdrawn may have succeeded after that.
                self.recover(None)
            return len(self.followers()) >= standbys

        self.rig.wait(stocked, f"{standbys} standbys", PATIENCE_S)

    def heal(self) -> bool:
        """Returns whether there was anything to heal."""
        broken = [node for node in self.nodes if node.frozen or node.name in self.cut]
        for node in broken:
            if node.name in self.cut:
                self.rig.proxy(node).heal()
            if node.frozen:
                node.thaw()
        self.cut.clear()
        return bool(broken)

    def verify(self, *, final: bool = False) -> None:
        """Checks that one owner goes on, that the journal is lawful, and that the outputs match the
        oracle."""
        before = self.group.journal.read().seq

        def goes_on() -> bool:
            owners = [node for node in self.nodes if self.reachable(node) and node.owns(self.group.spec)]
            law = self.group.journal.read()
            alone = len(owners) == 1 and law.owners[-1] == owners[0].name
            return alone and (final or law.seq >= before + 2)

        self.rig.wait(goes_on, f"one owner that goes on behind seq {before}", PATIENCE_S)
        verdict = self.group.judge.verdict(final=final)
        assert verdict.clean, f"{verdict}; {self.rig.picture()}"

    # --- faults

    def _arm_fault(self, plan: Plan | None) -> None:
        if plan is not None:
            plan.victim.news.reached.clear()
            plan.victim.ask("fault", point=plan.point, fault=plan.fault)

    def _happened(self, plan: Plan | None) -> Reached | None:
        if plan is None:
            return None
        return next((one for one in plan.victim.news.reached if one.point == plan.point), None)

    def _until(self, plan: Plan | None, condition: Callable[[], bool]) -> bool:
        """Returns True when the condition holds, or False if the fault came first and was carried out."""
        fresh = self._happened(plan) is None

        def over() -> bool:
            return condition() or (fresh and self._happened(plan) is not None)

        self.rig.wait(over, f"the handover, or its fault ({plan})", PATIENCE_S)
        if plan is None or not fresh or self._happened(plan) is None:
            return True
        self._carry_out(plan)
        return False

    def _await_fault(self, plan: Plan | None) -> None:
        """Waits for the fault after there is a new owner. A fault that has not come yet comes with its first
        batch, or never."""
        if plan is not None and not self._happened(plan):
            self._until(plan, lambda: self._is_past(plan))

    def _is_past(self, plan: Plan) -> bool:
        """Returns whether the victim has passed the point, by its own reports, which come in order."""
        status = self.status(plan.victim)
        if status is None or status.role is Role.STOPPED or status.phase in ("following", "refused"):
            return True
        granted = self.group.journal.read().granted
        if status.role is not Role.OWNER or status.epoch < granted:
            return False  # it is about to own, or will not own any more
        commits = self.group.journal.commits()
        first = next((commit.seq for commit in commits if commit.epoch == granted), None)
        return first is not None and status.seq >= first

    def _carry_out(self, plan: Plan) -> None:
        node = plan.victim
        self.log(f"{plan.fault} at {plan.point}: {node.name}")
        if plan.fault == "kill":
            self.rig.wait(lambda: not node.alive, f"{node.name} to die", PATIENCE_S)
        elif plan.fault == "stop":
            self.rig.wait(node.stopped_itself, f"{node.name} to stop", PATIENCE_S)
        elif plan.fault == "cut":
            self.rig.proxy(node).cut()
            self.cut.add(node.name)
            node.tell("go_on")
        else:
            self.rig.kill_broker()
            node.tell("go_on")
            self.rig.start_broker()
            self.group.reconnect()
        plan.done = True

    def _silence_s(self, plan: Plan | None) -> float:
        """When the broker is back, the owner goes on by itself, which takes its clients some seconds."""
        if plan is not None and plan.fault == "broker":
            return 15.0
        holder = self.group.journal.law.owners[-1]
        return _SILENCE_S if self.reachable(self.rig.nodes[holder]) else 0.0

    # --- orders

    def _order_claim(self, node: Node, over: int, plan: Plan | None = None) -> None:
        self.log(f"{node.name} is to claim over {over}")
        self.ordered[node.name] = order = uuid4().hex
        self._tell(node, "own", plan, order=order, over=over)

    def _withdraw_orders(self) -> None:
        """Starts replicas again without their order if they were to claim and have not, as an agent does."""
        for node in self.nodes:
            status = self.status(node)
            if status is None:
                continue
            order = self.ordered.get(node.name)
            pending = order is not None and order != status.order_id and status.role is not Role.OWNER
            if pending and self.reachable(node):
                self.log(f"{node.name}: its order is withdrawn")
                node.stop(self.group.spec)
                self._start(node)
                continue
            if self.reachable(node):
                self.ordered.pop(node.name, None)
            self._tell(node, "succeed", handover=None)
            self._tell(node, "release", handover=None)
            node.ask("fault", point=None, fault="")

    def _tell(self, node: Node, what: str, plan: Plan | None = None, **arguments: object) -> None:
        try:
            if plan is not None and plan.victim is node:
                node.tell(what, group=self.group.spec.id, **arguments)  # it may not live to answer
            else:
                node.ask(what, group=self.group.spec.id, **arguments)
        except (NodeGone, CommandFailed) as error:
            self.log(f"{node.name} did not take {what}: {error}")

    # --- conditions

    def _is_armed(self, node: Node, handover: str) -> bool:
        status = self.status(node)
        return status is not None and status.armed == handover

    def _owns_by(self, node: Node, handover: str) -> bool:
        status = self.status(node)
        return status is not None and status.role is Role.OWNER and status.order_id == handover

    def _has_stopped(self, node: Node) -> bool:
        status = self.status(node)
        return status is not None and status.role is Role.STOPPED

    def _owns_since(self, node: Node, granted: int) -> bool:
        status = self.status(node)
        return status is not None and status.role is Role.OWNER and status.epoch > granted

    def _best_standbys(self) -> list[Node]:
        """Returns the standbys, with those that have followed furthest first."""
        found = self.standbys()
        return sorted(found, key=lambda node: -(self.status(node) or _NOTHING).seq)

    def _stock(self) -> None:
        """Starts a replica on nodes that have none, or whose replica gave way."""
        for node in self.nodes:
            status = self.status(node)
            stopped = status is not None and status.role is Role.STOPPED
            if node.ready and self.reachable(node) and (node.name not in self.started or stopped):
                phase = status.phase if status is not None else "stopped"
                why = status.error.message if status is not None and status.error is not None else "no error"
                assert phase in ("fenced", "refused", "stopped"), f"{node.name}: {why}; {status}"
                node.stop(self.group.spec)
                self._start(node)

    def _start(self, node: Node) -> None:
        node.start(self.group.spec)
        self.started.add(node.name)
        self.ordered.pop(node.name, None)


def _follows_closely(status: ReplicaStatus | None) -> bool:
    return status is not None and status.phase == "following" and status.seq > 0 and status.behind <= 3


_NOTHING = ReplicaStatus(group="", role=Role.STOPPED)
