"""The state of a key, as the dashboard shows it."""

from __future__ import annotations

import django
import pytest

django.setup()

from pipeline_runtime.model.kept import KeptEntry  # noqa: E402
from webapp.monitoring.kept import _entry  # noqa: E402


@pytest.mark.parametrize(
    ("state", "cut", "shown"),
    [
        ('{"last": "a\\u0000b", "n": 9007199254740993}', False, {"last": "a\\x00b", "n": "9007199254740993"}),
        ('{"last": NaN}', False, '{"last": NaN}'),
        ('{"last": "a\0', True, '{"last": "a\\x00'),
    ],
)
def test_a_state_is_shown_as_a_record_is(state: str, cut: bool, shown: object) -> None:
    assert _entry(KeptEntry(key="k", state=state, state_cut=cut))["state"] == shown
