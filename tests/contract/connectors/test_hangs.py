"""Each connector says that its system hangs, however long one answer may take, and goes on with it later."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hangs import KINDS, told_s

pytestmark = [pytest.mark.integration, pytest.mark.full]


@pytest.mark.parametrize("kind", KINDS)
def test_a_system_that_hangs_is_told_of(kind: str, tmp_path: Path) -> None:
    told_s(kind, tmp_path)  # how long it takes: make bench-hangs
