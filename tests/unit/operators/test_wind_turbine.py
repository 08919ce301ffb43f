"""The template of wind turbines, element by element over the whole recording, against its oracle."""

from datetime import UTC, datetime

import pytest

from tests.oracles import wind_turbine
from tests.unit.operators.templates import compared, streams_of


@pytest.fixture(scope="module")
def streams():
    return streams_of("wind-turbine")


@pytest.fixture(scope="module")
def expected():
    return wind_turbine.expected()


@pytest.mark.parametrize("element", ["expected", "performance", "alarm"])
def test_each_row_is_the_oracles(streams, expected, element):
    # Turbines have the same times, and their order within one is open.
    found = sorted(streams[element], key=lambda row: (row["_time"], row["turbine"]))
    # The last windows are open when the rows end.
    wanted = [row for row in expected[element] if row["_time"] <= found[-1]["_time"]]
    assert len(expected[element]) - len(wanted) <= 4 * 6
    assert wanted == compared(found, wanted[0])


def test_the_turbine_that_stands_in_good_wind_is_the_only_one_with_an_alarm(expected):
    alarms = [(row["turbine"], row["alarm"], row["_time"]) for row in expected["alarm"]]
    assert alarms == [
        ("R80711", "raised", datetime(2015, 7, 23, 19, tzinfo=UTC)),
        ("R80711", "cleared", datetime(2015, 7, 24, 16, tzinfo=UTC)),
        ("R80711", "raised", datetime(2015, 7, 26, 16, tzinfo=UTC)),
        ("R80711", "cleared", datetime(2015, 7, 28, 13, tzinfo=UTC)),
    ]


def test_the_others_give_what_their_curve_expects(expected):
    others = [row["performance"] for row in expected["performance"] if row["turbine"] != "R80711"]
    known = sorted(value for value in others if value is not None)
    assert 85 < known[len(known) // 2] < 115
