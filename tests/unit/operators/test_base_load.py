"""The template of the base load, element by element over the whole recording, against its oracle."""

from datetime import UTC, datetime

import pytest

from tests.oracles import base_load
from tests.unit.operators.templates import compared, streams_of


@pytest.fixture(scope="module")
def streams():
    return streams_of("base-load")


@pytest.fixture(scope="module")
def expected():
    return base_load.expected()


@pytest.mark.parametrize("element", ["base", "alarm"])
def test_each_row_is_the_oracles(streams, expected, element):
    found = streams[element]
    # The last 24 windows are open when the rows end.
    wanted = [row for row in expected[element] if row["_time"] <= found[-1]["_time"]]
    assert len(expected[element]) - len(wanted) <= 24
    assert wanted == compared(found, wanted[0])


def test_what_is_on_for_a_day_raises_an_alarm_and_has_no_meter(expected):
    alarms = [(row["alarm"], row["_time"]) for row in expected["alarm"]]
    assert alarms == [
        ("raised", datetime(2008, 3, 1, 12, tzinfo=UTC)),
        ("cleared", datetime(2008, 3, 2, 1, tzinfo=UTC)),
        ("raised", datetime(2008, 3, 3, 22, tzinfo=UTC)),
        ("cleared", datetime(2008, 3, 4, 23, tzinfo=UTC)),
        ("raised", datetime(2008, 3, 6, 18, tzinfo=UTC)),
        ("cleared", datetime(2008, 3, 6, 23, tzinfo=UTC)),
    ]
    raised = [at for alarm, at in alarms if alarm == "raised"]
    when_raised = [row for row in expected["base"] if row["_time"] in raised]
    for row in when_raised:
        assert row["kitchen_least"] == row["laundry_least"] == row["heating_least"] == 0
        assert row["unmetered_least"] > 300
