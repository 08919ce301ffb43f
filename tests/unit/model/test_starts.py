"""Where a group begins, on its way to a node."""

from typing import Any

from pipeline_runtime.model.desired import ClaimOrder, starts_of
from pipeline_runtime.model.ids import Epoch


def test_positions_of_sources_travel_as_offsets_do() -> None:
    positions: dict[str, Any] = {
        "replay": {"row": 7, "t0": 1, "shifts": [[3, 4]]},
        "theirs-1": 5,
        "theirs-0": 4,
        "mine": "5",
    }
    order = ClaimOrder(id="o", over=Epoch(0), starts=starts_of(positions))
    again = ClaimOrder.model_validate_json(order.model_dump_json())
    assert again == order
    assert hash(again) == hash(order)
    assert again.positions == positions
    assert starts_of(dict(reversed(positions.items()))) == order.starts
