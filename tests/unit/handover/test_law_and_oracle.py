"""The law of journals and the oracle of the handover tests find what they are there to find."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline_runtime.journal.records import (
    Announce,
    Arm,
    Boundary,
    Claim,
    Commit,
    Record,
    Release,
    Retire,
)
from pipeline_runtime.model.ids import Epoch, Seq
from tests.benchmarks.events import Verdict
from tests.handover.lawful import JournalLaw, assert_lawful
from tests.handover.oracle import Oracle


def commit(epoch: int, seq: int, end: int | None = None) -> Commit:
    return Commit(Epoch(epoch), boundary(seq, end))


def boundary(seq: int, end: int | None = None) -> Boundary:
    return Boundary(Seq(seq), {"in-0": end or seq}, seq)


def claim(epoch: int, node: str = "a") -> Claim:
    return Claim(Epoch(epoch), f"order-{epoch}", node)


def armed(epoch: int, token: str = "t") -> Arm:
    return Arm(Epoch(epoch), token, "h", "b")


def release(epoch: int, seq: int, token: str = "t") -> Release:
    return Release(Epoch(epoch), Seq(seq), token, "h", "b")


def announce(epoch: int, seq: int, end: int | None = None) -> Announce:
    return Announce(Epoch(epoch), boundary(seq, end))


LAWFUL: dict[str, list[Record]] = {
    "claims": [claim(1), commit(1, 1), claim(2), claim(3), commit(3, 2)],
    "a release": [claim(1), armed(2), announce(1, 1), commit(1, 1), release(1, 1), commit(2, 2)],
    "an arming in vain": [claim(1), armed(2), commit(1, 1), claim(2, "c"), armed(3, "u"), commit(2, 2)],
    "an announced batch that its owner never committed": [
        claim(1),
        announce(1, 1, 10),
        claim(2),
        commit(2, 1, 20),
    ],
    "an end": [claim(1), commit(1, 1), Retire(Epoch(1))],
}
UNLAWFUL: dict[str, list[Record]] = {
    "a commit of nobody's": [commit(1, 1)],
    "a fenced owner that commits": [claim(1), claim(2), commit(1, 1)],
    "a seq twice": [claim(1), commit(1, 1), commit(1, 1)],
    "a seq left out": [claim(1), commit(1, 1), commit(1, 3)],
    "an epoch left out": [claim(1), claim(3)],
    "an epoch twice": [claim(1), claim(1)],
    "an owner that commits behind its release": [
        claim(1),
        armed(2),
        commit(1, 1),
        release(1, 1),
        commit(1, 2),
    ],
    "a release to nobody": [claim(1), commit(1, 1), release(1, 1)],
    "a release to who armed for another epoch": [claim(1), armed(1), commit(1, 1), release(1, 1)],
    "a release of a seq that is not the last": [claim(1), armed(2), commit(1, 1), release(1, 2)],
    "a release by who was fenced": [claim(1), armed(2), claim(2), release(1, 0)],
    "a token used twice": [claim(1), armed(2), armed(2)],
    "another batch than was announced": [claim(1), announce(1, 1, 10), commit(1, 1, 20)],
    "a commit behind the end": [claim(1), Retire(Epoch(1)), commit(1, 1)],
}


def test_an_owner_that_claims_again_is_no_handover() -> None:
    law = JournalLaw()
    law.take([claim(1, "a"), claim(2, "a"), armed(3), release(2, 0), claim(4, "b"), claim(5, "a")])
    assert (law.granted, law.handovers) == (5, 2)


@pytest.mark.parametrize("name", LAWFUL)
def test_a_lawful_journal(name: str) -> None:
    assert_lawful(LAWFUL[name])


@pytest.mark.parametrize("name", UNLAWFUL)
def test_an_unlawful_journal(name: str) -> None:
    with pytest.raises(AssertionError):
        assert_lawful(UNLAWFUL[name])


INPUTS = [{"k": "ab"[n % 2], "n": n, "pad": 0} for n in range(6)]


def expected() -> list[dict[str, Any]]:
    made = []
    for key in "ab":
        count = checksum = 0
        for row in INPUTS:
            if row["k"] == key:
                count, checksum = count + 1, (checksum * 31 + row["n"] + 1) % 2**31
                made.append({"k": key, "n": row["n"], "count": count, "checksum": checksum})
    return made


def verdict(outputs: list[dict[str, Any]], *, final: bool = True) -> Verdict:
    oracle = Oracle()
    oracle.take_inputs(INPUTS)
    oracle.take_outputs(outputs)
    return oracle.verdict(final=final)


def test_the_oracle_agrees_whatever_the_order_of_keys() -> None:
    right = expected()
    assert verdict(right).clean
    assert verdict([*right[3:], *right[:3]]).clean


def test_the_oracle_finds_lost_doubled_reordered_and_wrong_rows() -> None:
    right = expected()
    assert verdict(right[:-1]) == Verdict(lost=1, duplicated=0, reordered=0, wrong=0)
    assert verdict(right[:-1], final=False).clean  # it may still come
    assert verdict([right[0], *right[2:]], final=False) == Verdict(lost=1, duplicated=0, reordered=0, wrong=0)
    assert verdict([*right, right[-1]]) == Verdict(lost=0, duplicated=1, reordered=0, wrong=0)
    assert verdict([right[1], right[0], *right[2:]]) == Verdict(lost=0, duplicated=0, reordered=1, wrong=0)
    assert verdict([{**right[0], "checksum": 5}, *right[1:]]) == Verdict(0, 0, 0, wrong=1)
