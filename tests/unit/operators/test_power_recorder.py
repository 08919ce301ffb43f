"""The template of DEBS 2012's Query 2, element by element over the whole recording, against its oracle."""

import pytest

from tests.oracles import power_recorder
from tests.unit.operators.templates import compared, streams_of


@pytest.fixture(scope="module")
def streams():
    return streams_of("power-recorder")


@pytest.fixture(scope="module")
def expected():
    return power_recorder.expected()


@pytest.mark.parametrize("element", ["variation", "flagged", "alerts", "around", "power"])
def test_each_row_is_the_oracles(streams, expected, element):
    found, wanted = streams[element], expected[element]
    # The last window of each size is open when the rows end.
    closed = wanted if element == "around" else [row for row in wanted if row["_time"] <= found[-1]["_time"]]
    assert len(wanted) - len(closed) <= 3
    assert closed == compared(found, wanted[0])


def test_there_is_something_to_record(expected):
    assert len(expected["alerts"]) >= 3
    assert 0 < len(expected["around"]) < 17_000
