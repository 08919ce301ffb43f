"""Sites come and go, elements move among them, and every row counts once: compared with an oracle.

    PARTS=proof make bench-placement

Three halls behind slow lines, each with a copy of the local group (halls.py); the merged stream and the
totals run where they are moved to. Afterwards the windows of each hall, the merged streams and the totals
are what plain Python computes from the rows that the sources have read: each once, in the order of its
sensor. All journals keep the law (tests/handover/lawful.py). An oracle that leaves out one row has to be
found wrong by windows, merged stream and totals, else the proof proves nothing, and fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic, sleep
from typing import Any

import httpx

from pipeline_runtime.model.ids import journal_topic, stream_topic
from tests.benchmarks import halls
from tests.benchmarks.events import Output
from tests.benchmarks.harness import log
from tests.benchmarks.near_sources import upload
from tests.benchmarks.sites import KINDS, Site, Sites, running_sites
from tests.handover.rig import Journal
from tests.integration.pipelines.driving import API, deploy_draft, element, hand_over
from tests.waiting import wait_until

CLOUD = Site("cloud")
FIRST = (Site("hall-1", 40.0), Site("hall-2", 80.0))
LATER = Site("hall-3", 60.0)
RATE = float(os.environ.get("PROOF_RATE", "50"))
ROWS = 150_000  # more than are read
STEP_S = 300.0  # a busy machine takes a minute for a first query
SAMPLES_S = 45.0  # more than one sample of a node's CPU, which are means of 30 s
FLAPS = 3
LEFT_OUT = 777  # the row that the wrong oracle does not know
PATH = f"{API}/pipelines/{halls.NAME}"
ONE, TWO, THREE = FIRST[0].name, FIRST[1].name, LATER.name
WINDOWS = {hall: f"windows-{hall}" for hall in (ONE, TWO, THREE)}
BOTH = (WINDOWS[ONE], WINDOWS[TWO], "all", "totals")
EVERY = (*BOTH, WINDOWS[THREE], "all-3")


class Proof:
    """The pipeline while it changes, and all that it has put out."""

    def __init__(self, sites: Sites, client: httpx.Client, ends: ExitStack) -> None:
        self.sites, self.client, self._ends = sites, client, ends
        self.files: dict[str, str] = {}
        self.deployment = ""
        self.streams: dict[str, halls.Stream] = {}
        self.journals: dict[str, Journal] = {}

    # -- the draft and what runs

    def create(self, document: dict[str, Any]) -> None:
        body = {"document": document, "name": halls.NAME}
        self.client.post(f"{API}/pipelines", json=body).raise_for_status()
        self.deployment = deploy_draft(self.client, halls.NAME)

    def save(self, document: dict[str, Any]) -> None:
        headers = {"If-Match": f'"{self.client.get(PATH).json()["revision"]}"'}
        self.client.put(PATH, json={"document": document}, headers=headers).raise_for_status()

    def changes(self, document: dict[str, Any]) -> dict[str, str]:
        """Element -> what deploying that would do to it. It becomes the draft."""
        self.save(document)
        answer = self.client.post(f"{PATH}/deploy", json={"dry_run": True}).raise_for_status().json()
        return {each["element"]: each["change"] for each in answer["changes"]}

    def upgrade(self, document: dict[str, Any]) -> None:
        self.save(document)
        deploy_draft(self.client, halls.NAME)

    def watch(self, streams: Iterable[str], groups: Iterable[str]) -> None:
        bootstrap = self.sites.broker.bootstrap
        for id in streams:
            self.streams[id] = halls.Stream(bootstrap, stream_topic(self.deployment, id))
            self._ends.callback(self.streams[id].close)
        for id in groups:
            self.journals[id] = Journal(bootstrap, journal_topic(self.deployment, id))
            self._ends.callback(self.journals[id].tail.close)

    # -- steps

    def goes_on(self, *ids: str) -> None:
        """Each of the elements has committed some batches with output since now."""
        before = {id: len(self.streams[id].poll()) for id in ids}

        def moved() -> bool:
            return all(len(self.streams[id].poll()) > before[id] + 5 for id in ids)

        wait_until(moved, f"{', '.join(ids)} to go on", STEP_S, look_every_s=1.0)

    def move(self, id: str, target: str, action: str = "migrate", strategy: str | None = None) -> None:
        found = hand_over(self.client, halls.NAME, id, action, target, strategy)
        assert found["outcome"] == "done", found
        self.runs_on(id, target)

    def runs_on(self, id: str, node: str) -> None:
        def there() -> bool:
            return bool(element(self.client, halls.NAME, id)["node"] == node)

        wait_until(there, lambda: f"{id} to run on {node}", STEP_S, look_every_s=1.0)

    def moved_by(self, policy: str) -> list[dict[str, Any]]:
        """The handovers that it has ordered, the first one first."""
        found = self.client.get(f"{API}/handovers", params={"pipeline": halls.NAME}).raise_for_status().json()
        mine = [each for each in found if each["reason"] == f"policy {policy}"]
        return sorted(mine, key=lambda each: str(each["created_at"]))

    def ended_moves(self, policy: str) -> list[dict[str, Any]]:
        def ended() -> bool:
            return all(each["ended_at"] for each in self.moved_by(policy))

        wait_until(ended, f"what {policy} moves to have arrived", STEP_S, look_every_s=1.0)
        return self.moved_by(policy)

    def falls_silent(self, site: str) -> None:
        def silent() -> bool:
            return not self.client.get(f"{API}/nodes/{site}").json()["up"]

        wait_until(silent, f"{site} to be silent", STEP_S, look_every_s=1.0)

    def comes_back(self, site: str) -> None:
        self.sites.nodes[site].launch()
        self.sites.wait_ready(self.client, site)

    def order(self, halls_: Iterable[str], what: str) -> None:
        """`what`: pause or resume, of what reads the halls' rows."""
        for hall in halls_:
            self.client.post(f"{PATH}/elements/readings-{hall}/{what}").raise_for_status()

    # -- what it proves

    def expected(self, hall: str, left_out: int | None = None) -> list[Output]:
        """The oracle: of all rows that the hall's source has read."""
        count = halls.rows_read(self.journals[f"local-{hall}"], hall)
        return halls.windows_of(halls.row(hall, n) for n in range(count) if n != left_out)

    def forget(self, hall: str) -> list[Output]:
        """A site that goes: what came of it counts on in the totals."""
        windows = self.expected(hall)
        for group in (f"local-{hall}", "all-3"):
            self.journals.pop(group)
        return windows

    def lawful(self) -> dict[str, str]:
        """Group -> its batches and their owners. AssertionError where a journal breaks the law."""
        found = {}
        for group, journal in self.journals.items():
            law = journal.read()
            found[group] = f"{law.seq} batches, owned by {' '.join(law.owners)}"
        return found


def document(
    proof: Proof, copies: Iterable[str], more: Iterable[halls.Element], totals_read: str
) -> dict[str, Any]:
    elements: list[halls.Element] = []
    groups = {}
    for hall in copies:
        elements += [halls.recorded(hall, proof.files[hall], RATE), *halls.local(hall, hall)]
        groups[f"local-{hall}"] = [f"{id}-{hall}" for id in ("readings", "good", "windows")]
    return halls.document([*elements, *more, halls.totals(None, totals_read)], groups)


@dataclass
class Faults:
    """What is not as the oracle says, of each stream; empty: nothing."""

    found: list[str]

    def windows(self, stream: str, expected: Iterable[Output], got: Sequence[Output]) -> None:
        verdict = halls.judge_windows(expected, got)
        if not verdict.clean:
            self.found.append(f"{stream}: {verdict}")


def faults(
    proof: Proof, running: Iterable[str], gone: Sequence[Output] = (), left_out: int | None = None
) -> list[str]:
    """`gone`: windows of a site that has gone; `left_out`: of the first hall, a row that the oracle lacks."""
    expected = {hall: proof.expected(hall, left_out if hall == ONE else None) for hall in running}
    found = Faults([])
    streams = {id: stream.poll() for id, stream in proof.streams.items()}
    for hall, windows in expected.items():
        found.windows(WINDOWS[hall], windows, streams[WINDOWS[hall]])
    found.windows("all", [*expected[ONE], *expected[TWO]], streams["all"])
    if THREE in expected:
        # The second merge came later: it has the end of what the first one gave, and all of the third.
        mine = [output for output in streams["all-3"] if output[0].startswith(THREE)]
        first = [output for output in streams["all-3"] if not output[0].startswith(THREE)]
        found.windows("all-3, of the third site", expected[THREE], mine)
        if first != streams["all"][len(streams["all"]) - len(first) :]:
            found.found.append("all-3: not the end of what `all` has")
    every = [*gone, *(window for windows in expected.values() for window in windows)]
    return [*found.found, *halls.judge_totals(halls.totals_of(every), streams["totals"])]


def judge(proof: Proof, running: Sequence[str], gone: Sequence[Output] = ()) -> None:
    """When all that the halls have sent has come through. AssertionError when it is not what the oracle says,
    or when an oracle that is wrong is not found to be."""
    proof.order(running, "pause")
    last: list[str] = []

    def right() -> bool:
        last[:] = faults(proof, running, gone)
        return not last

    wait_until(right, lambda: f"what the oracle says; now: {last}", STEP_S, look_every_s=2.0)
    streams = {id: len(proof.streams[id].outputs) for id in proof.streams}
    log(f"as the oracle says: {streams}")
    for group, said in proof.lawful().items():
        log(f"  {group}: {said}")
    wrong = faults(proof, running, gone, left_out=LEFT_OUT)
    named = [any(each.startswith(part) for each in wrong) for part in (WINDOWS[ONE], "all:", "line-")]
    assert all(named), f"an oracle that leaves out a row is not found to be wrong everywhere: {wrong}"
    log(f"and an oracle that leaves out one row is found to be wrong: {wrong}")


def prove() -> int:
    begun = monotonic()

    def done(what: str) -> None:
        log(f"{monotonic() - begun:6.0f} s  {what}")

    with (
        running_sites((CLOUD, *FIRST, LATER)) as sites,
        sites.fogline.client() as client,
        ExitStack() as ends,
    ):
        proof = Proof(sites, client, ends)
        proof.files = {site.name: upload(client, site.name, ROWS) for site in (*FIRST, LATER)}
        sites.join(client, CLOUD.name, ONE, TWO)
        merge = halls.merged("all", CLOUD.name, [WINDOWS[ONE], WINDOWS[TWO]])
        two_sites = document(proof, (ONE, TWO), [merge], "all")
        proof.create(two_sites)
        proof.watch(BOTH, [f"local-{ONE}", f"local-{TWO}", "all", "totals"])
        proof.goes_on(*BOTH)
        done("two sites run")
        come(proof, merge)
        done("a third site came: its node joined, its copy came by an upgrade")
        move_about(proof)
        done("the merge, the totals and a copy moved among the sites, and the copy back")
        a_battery_runs_down(proof)
        done("a battery ran down, and what ran on it left in order, by a policy")
        cpu_flaps(proof)
        done("CPU that went to and fro around a policy's threshold moved nothing")
        die_and_come_back(proof)
        done("two were killed and came back, the third was cut off: copies waited, or were restored")
        judge(proof, (ONE, TWO, THREE))
        gone = proof.forget(THREE)
        proof.upgrade(two_sites)
        proof.order((ONE, TWO), "resume")
        for id in (WINDOWS[THREE], "all-3"):
            proof.streams.pop(id)
        proof.goes_on(*BOTH)
        done("the third site went: its copy and the second merge were taken out by an upgrade")
        judge(proof, (ONE, TWO), gone)
        done("every row counts once")
    return 0


def come(proof: Proof, merge: halls.Element) -> None:
    """By a second merge behind the first: that works whatever a merge that runs takes."""
    proof.sites.join(proof.client, THREE)
    wider = {**merge, "inputs": {**merge["inputs"], "in3": WINDOWS[THREE]}}
    changes = proof.changes(document(proof, (ONE, TWO, THREE), [wider], "all"))
    log(f"one input more for the merge that runs: {changes['all']}")
    behind = halls.merged("all-3", CLOUD.name, ["all", WINDOWS[THREE]])
    proof.upgrade(document(proof, (ONE, TWO, THREE), [merge, behind], "all-3"))
    proof.watch((WINDOWS[THREE], "all-3"), (f"local-{THREE}", "all-3"))
    proof.goes_on(*EVERY)


def move_about(proof: Proof) -> None:
    proof.move("all", ONE)
    proof.move("totals", TWO)
    proof.goes_on(*EVERY)
    proof.move(WINDOWS[TWO], CLOUD.name, strategy="stop-and-copy")
    proof.goes_on(*EVERY)
    proof.move(WINDOWS[TWO], TWO)
    proof.goes_on(*EVERY)


def a_battery_runs_down(proof: Proof) -> None:
    """The battery of the second hall, which runs its copy and the totals. Both leave it, one after the other,
    and are moved back by hand when it is charged."""
    calm(proof)
    proof.sites.tell(f"{TWO}.battery", "0.15")
    rule = {"kind": "battery", "threshold": 0.2, "for_s": 0}
    with policy(proof, "night", rule):
        there = f"{API}/nodes/{TWO}"

        def is_empty() -> bool:
            elements = proof.client.get(there).json()["elements"]
            return not [each for each in elements if each["role"] == "owner"]

        wait_until(is_empty, f"{TWO} to be empty", STEP_S, look_every_s=1.0)
    moves = proof.ended_moves("night")
    assert {move["outcome"] for move in moves} == {"done"}, moves
    assert sorted(move["element"] for move in moves) == sorted([f"readings-{TWO}", "totals"]), moves
    assert all(first["ended_at"] <= then["created_at"] for first, then in pairwise(moves)), moves
    proof.goes_on(*EVERY)
    proof.sites.tell(f"{TWO}.battery", "0.9")
    proof.move(WINDOWS[TWO], TWO)
    proof.move("totals", TWO)
    proof.goes_on(*EVERY)


def cpu_flaps(proof: Proof) -> None:
    """The CPU of the first hall, which runs its copy and the merge. It is above the threshold in each minute,
    but never for the two minutes that the policy asks for."""
    calm(proof)
    with policy(proof, "busy", {"kind": "cpu", "threshold": 0.7, "for_s": 120}):
        for _ in range(FLAPS):
            for cpu in ("0.9", "0.4"):
                proof.sites.tell(f"{ONE}.cpu", cpu)
                sleep(SAMPLES_S)  # the load is what is made here, not waited for
        assert not proof.moved_by("busy")
        found = proof.client.get(f"{API}/policies/log", params={"policy": "busy", "limit": 100}).json()
        said = {each["code"] for each in found if each["node"] == ONE}
        assert "not-yet" in said, f"the policy has not seen it above the threshold: {found}"
        proof.sites.tell(f"{ONE}.cpu", "0.95")

        def moved() -> bool:
            return bool(proof.moved_by("busy"))

        wait_until(moved, "what stays above the threshold to move something", STEP_S, look_every_s=1.0)
    calm(proof)
    [move] = proof.ended_moves("busy")[:1]
    proof.goes_on(*EVERY)
    proof.move(WINDOWS[ONE] if move["element"] == f"readings-{ONE}" else move["element"], ONE)
    proof.goes_on(*EVERY)


def calm(proof: Proof) -> None:
    """All nodes are on one machine, whose CPU each would report as its own."""
    for name in proof.sites.nodes:
        proof.sites.tell(f"{name}.cpu", "0.2")


@contextmanager
def policy(proof: Proof, name: str, rule: dict[str, Any]) -> Iterator[None]:
    body = {"name": name, "rule": rule, "mode": "automatic", "moves_per_hour": 60}
    id = proof.client.post(f"{API}/policies", json=body).raise_for_status().json()["id"]
    yield
    proof.client.delete(f"{API}/policies/{id}").raise_for_status()


def die_and_come_back(proof: Proof) -> None:
    nodes = proof.sites.nodes
    nodes[TWO].kill()  # with the totals and its copy, which wait for it: nobody restores them
    proof.comes_back(TWO)
    proof.goes_on(*EVERY)
    nodes[ONE].kill()  # with the merge and its copy
    proof.falls_silent(ONE)
    proof.move(WINDOWS[ONE], THREE, "restore")
    proof.move("all", CLOUD.name, "restore")
    proof.goes_on(*EVERY)
    proof.comes_back(ONE)
    proof.move(WINDOWS[ONE], ONE)
    proof.goes_on(*EVERY)
    for kind in KINDS:
        proof.sites.line(THREE, kind).cut()
    proof.falls_silent(THREE)
    proof.goes_on(*BOTH)
    for kind in KINDS:
        proof.sites.line(THREE, kind).heal()
    proof.goes_on(*EVERY)
