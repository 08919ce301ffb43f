"""The desired state that a node gets."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pipeline_runtime.model.desired import NodeDesired


def test_a_refusal_shows_nothing_of_what_was_refused() -> None:
    """It goes into logs, and a desired state holds the tokens for checkpoints."""
    source = {"url": "http://edge-b:1", "token": ["hush"], "seq": None}
    replica = {"spec": {"parameters": "hush"}, "role": "owner", "source": source}
    with pytest.raises(ValidationError) as refusal:
        NodeDesired.model_validate({"node": "edge-a", "revision": 1, "replicas": [replica]})
    assert "spec.parameters" in str(refusal.value)
    assert "hush" not in str(refusal.value)
