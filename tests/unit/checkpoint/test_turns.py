"""Tests how long one thread may keep other threads from running Python code."""

from __future__ import annotations

import sys

import pytest

from pipeline_runtime.checkpoint.turns import SHORT_S, short_turns


def test_turns_are_short_until_the_last_checkpoint_is_made() -> None:
    usual_s = sys.getswitchinterval()
    assert usual_s > SHORT_S
    first, second = short_turns(), short_turns()
    with first:
        with second:
            assert sys.getswitchinterval() == pytest.approx(SHORT_S)
        assert sys.getswitchinterval() == pytest.approx(SHORT_S), "the other one is not done"
    assert sys.getswitchinterval() == pytest.approx(usual_s)


def test_turns_are_as_usual_behind_a_checkpoint_that_failed() -> None:
    usual_s = sys.getswitchinterval()
    with pytest.raises(OSError, match="full"), short_turns():
        raise OSError("the disk is full")
    assert sys.getswitchinterval() == pytest.approx(usual_s)
