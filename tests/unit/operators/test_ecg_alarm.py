"""The template of an ECG's beats, element by element over the whole recording, against its oracle, and what
its model is worth on a recording that it has not learnt from."""

import gzip
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline_runtime.operators.recording import DATA
from tests.oracles import ecg_alarm
from tests.unit.operators.templates import streams_of

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "model-beats.md"
RATE_HZ = 360
LATE, NEAR = 25, 45  # samples: a beat is found that much after its middle, more or less


@pytest.fixture(scope="module")
def streams():
    return streams_of("ecg-alarm")


@pytest.fixture(scope="module")
def truth():
    return json.loads(gzip.decompress((DATA / "ecg-truth.json.gz").read_bytes()))


def compared(rows, like):
    """The columns that the oracle knows of. The model counts in single precision: six digits."""
    return [
        {
            name: pytest.approx(row[name], rel=1e-5, abs=1e-7) if isinstance(row[name], float) else row[name]
            for name in like
        }
        for row in rows
    ]


@pytest.mark.parametrize("element", ["filtered", "beats", "features", "judged", "suspects", "alarm"])
def test_each_row_is_the_oracles(streams, element):
    exact, wanted = ecg_alarm.expected()[element], ecg_alarm.in_detail()[element]
    assert wanted == compared(streams[element], wanted[0])
    assert exact == [{name: row[name] for name in exact[0]} for row in streams[element]]


def test_there_is_something_to_tell():
    expected = ecg_alarm.expected()
    alarms = [row["alarm"] for row in expected["alarm"]]
    assert alarms.count("raised") >= 2
    assert all(before != after for before, after in pairwise(alarms))
    assert 0 < len(expected["suspects"]) < len(expected["judged"]) / 2


def matched(rows, truth, start):
    """Row -> the beat that it is of, by their number: the nearest one, if it is near."""
    found = {}
    for number, row in enumerate(rows):
        sample = (row["_time"] - start).total_seconds() * RATE_HZ - LATE
        nearest = min(range(len(truth)), key=lambda beat: abs(truth[beat]["sample"] - sample))
        if abs(truth[nearest]["sample"] - sample) <= NEAR:
            found[number] = nearest
    return found


def test_the_page_says_what_beats_are_found_and_what_the_model_is_worth(streams, truth):
    start = streams["readings"][0]["_time"]
    beats = set(matched(streams["beats"], truth, start).values())
    assert len(beats) == len(streams["beats"])  # each is found once, and nothing else
    found = matched(streams["judged"], truth, start)
    counts = {(label, said): 0 for label in (False, True) for said in ("normal", "abnormal")}
    for row, beat in found.items():
        counts[truth[beat]["abnormal"], streams["judged"][row]["beat"]] += 1
    text = PAGE.read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| (normal|abnormal) +\| +(\d+ +\| +\d+) +\|$", text, re.MULTILINE))
    told = {name: tuple(int(cell) for cell in cells.split("|")) for name, cells in table.items()}
    assert told == {
        name: (counts[label, "normal"], counts[label, "abnormal"])
        for name, label in (("normal", False), ("abnormal", True))
    }
    assert f"{len(beats)} of {len(truth)} beats" in text
    right, wrong = counts[True, "abnormal"], counts[False, "abnormal"]
    shares = {
        "accuracy": (counts[False, "normal"] + right) / sum(counts.values()),
        "precision": right / (right + wrong),
        "recall": right / (right + counts[True, "normal"]),
    }
    shares["right for"] = (counts[False, "normal"] + wrong) / sum(counts.values())
    for name, share in shares.items():
        assert f"{name} {share:.1%}".replace("%", " %") in text
