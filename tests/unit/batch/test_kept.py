"""A state as bytes is what was kept, exactly."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.batch.kept import Kept, decoded, encoded

_PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.integers(1, 2**31), st.lists(st.integers(-(2**62), 2**62)))
def test_a_state_comes_back_as_it_was(state: Any, version: int, timers: list[int]) -> None:
    kept = decoded(encoded(Kept(state, version, timers)))
    assert (kept.state, kept.version, kept.timers) == (state, version, timers)
    assert repr(kept.state) == repr(state), "an integer is no number, and -0.0 is not 0.0"
    assert encoded(kept) == encoded(Kept(state, version, timers)), "what is not changed is known by its bytes"


def test_a_number_that_is_none_stays_it() -> None:
    assert math.isnan(decoded(encoded(Kept([math.nan]))).state[0])


@pytest.mark.parametrize("data", [b"", b"{}", b"\xc1", encoded(Kept(1))[:-1], encoded(Kept(1)) + b"\0"])
def test_bytes_that_hold_no_state_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a state cannot be read"):
        decoded(data)
