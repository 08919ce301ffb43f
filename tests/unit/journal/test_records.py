"""A record that is written to a journal is read back unchanged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.journal.records import (
    Boundary,
    Claim,
    Commit,
    JournalDamaged,
    Record,
    Retire,
    decode,
    encode,
)
from pipeline_runtime.model.ids import Epoch, Seq

COUNTS = st.integers(0, 2**53)
JSON = st.recursive(
    st.none() | st.booleans() | COUNTS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
ENDS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)
EPOCHS = COUNTS.map(Epoch)
BOUNDARIES = st.builds(Boundary, COUNTS.map(Seq), ENDS, COUNTS)
RECORDS = st.one_of(
    st.builds(
        Commit,
        epoch=EPOCHS,
        boundary=BOUNDARIES,
        rows_in=COUNTS,
        rows_out=COUNTS,
        dead_letters=COUNTS,
        marks=ENDS,
        ended=st.lists(st.text(max_size=8)).map(tuple),
        node=st.text(max_size=8),
    ),
    st.builds(
        Claim,
        epoch=EPOCHS,
        order=st.text(max_size=8),
        node=st.text(max_size=8),
        start=ENDS,
        spec=st.none() | ENDS,
    ),
    st.builds(Retire, epoch=EPOCHS, node=st.text(max_size=8)),
)


@given(RECORDS)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    assert decode(encode(record)) == record


@given(BOUNDARIES)
def test_a_boundary_survives_sparks_offset_log(boundary: Boundary) -> None:
    assert Boundary.from_json(json.loads(json.dumps(boundary.to_json()))) == boundary


def test_a_field_that_is_not_known_is_damage() -> None:
    raw = json.dumps({**json.loads(encode(Retire(Epoch(3), "a"))), "later": 1}).encode()
    with pytest.raises(JournalDamaged, match="later"):
        decode(raw)


@pytest.mark.parametrize(
    "raw",
    [b"", b"x", b"{}", b"[]", b"7", b'{"kind":"COMMIT"}', b'{"kind":"NEW","epoch":1}', b'{"kind":"CLAIM"}'],
)
def test_what_is_no_record_is_named_damaged(raw: bytes) -> None:
    with pytest.raises(JournalDamaged, match="unreadable journal record"):
        decode(raw)
