"""The two simplest templates, element by element over the whole recording, against their oracles."""

import pytest

from tests.oracles import machine_power, numbers_average
from tests.unit.operators.templates import compared, streams_of


@pytest.fixture(scope="module")
def machine_streams():
    return streams_of("machine-power")


@pytest.mark.parametrize("element", ["variation", "alerts", "power"])
def test_each_row_of_machine_power_is_the_oracles(machine_streams, element):
    found, wanted = machine_streams[element], machine_power.expected()[element]
    # The last window of each size is open when the rows end.
    closed = [row for row in wanted if row["_time"] <= found[-1]["_time"]]
    assert len(wanted) - len(closed) <= 3
    assert closed == compared(found, wanted[0])


def test_each_row_of_numbers_average_is_the_oracles():
    streams, wanted = streams_of("numbers-average"), numbers_average.expected()
    for element in ("numbers", "average"):
        assert wanted[element] == compared(streams[element], wanted[element][0])
