"""Computes what the template ecg-alarm must put out: beats, the model's result for each beat, and alarms."""

from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import onnx
from scipy.signal import butter, lfilter, lfilter_zi

from pipeline_runtime.operators.recording import DATA

Row = dict[str, Any]
RATE_HZ = 360
BAND_HZ = (8, 20)
HEIGHT, APART = 0.2, timedelta(seconds=0.3)
# Their last digits depend on the order of sums, or on how the model computes.
APPROXIMATE = ("qrs", "abnormal", "worst")
LIMIT, RAISED_AFTER, CLEARED_AFTER = 0.5, timedelta(seconds=0.25), timedelta(seconds=2)


def expected() -> dict[str, list[Row]]:
    """All but those columns: what is here is exact."""
    return {
        element: [{name: row[name] for name in row if name not in APPROXIMATE} for row in rows]
        for element, rows in in_detail().items()
    }


@cache
def in_detail() -> dict[str, list[Row]]:
    times, counts = _recording()
    ecg = counts * 0.005
    qrs = _filtered(ecg)
    signal = [
        {"_time": at, "adc": int(count), "ecg": float(raw), "qrs": float(fast)}
        for at, count, raw, fast in zip(times, counts, ecg, qrs, strict=True)
    ]
    beats = _beats(signal)
    features = [
        {**beat, "rate_bpm": 60 / beat["since_last_s"]} for beat in beats if beat["since_last_s"] is not None
    ]
    judged = [{**row, **_judged(row)} for row in features]
    suspects = [row for row in judged if row["beat"] == "abnormal"]
    return {
        "filtered": signal,
        "beats": beats,
        "features": features,
        "judged": judged,
        "suspects": suspects,
        "alarm": _alarms(judged),
    }


def _recording() -> tuple[list[datetime], Any]:
    with gzip.open(DATA / "ecg.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    times = [datetime.fromisoformat(row["ts"]).astimezone(UTC) for row in rows]
    return times, np.array([int(row["adc"]) for row in rows])


def _filtered(signal: Any) -> Any:
    """Two Butterworth filters of second order, as if the first value had been there always."""
    for edge_hz, kind in zip(BAND_HZ, ("highpass", "lowpass"), strict=True):
        b, a = butter(2, edge_hz, kind, fs=RATE_HZ)
        signal, _ = lfilter(b, a, signal, zi=lfilter_zi(b, a) * signal[0])
    return signal


def _beats(signal: list[Row]) -> list[Row]:
    """Returns the highest of tops that are near each other, once a later row is far enough away."""
    tops = [
        now
        for before, now, after in zip(signal, signal[1:], signal[2:], strict=False)
        if before["qrs"] < now["qrs"] > after["qrs"] and now["qrs"] >= HEIGHT
    ]
    chosen: list[Row] = []
    for top in tops:
        if not chosen or top["_time"] - chosen[-1]["_time"] > APART:
            chosen.append(top)
        elif top["qrs"] > chosen[-1]["qrs"]:
            chosen[-1] = top
    if chosen and signal[-1]["_time"] - chosen[-1]["_time"] <= APART:
        chosen.pop()
    last, found = None, []
    for top in chosen:
        since_s = None if last is None else (top["_time"] - last).total_seconds()
        found.append({"_time": top["_time"], "qrs": top["qrs"], "ecg": top["ecg"], "since_last_s": since_s})
        last = top["_time"]
    return found


@cache
def _weights() -> tuple[Any, Any]:
    """(a row of three for each label, an intercept for each), as they are in the file."""
    [node] = onnx.load(DATA / "beats.onnx").graph.node
    of = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    assert (node.op_type, of["post_transform"]) == ("LinearClassifier", b"LOGISTIC")
    assert of["classlabels_strings"] == [b"normal", b"abnormal"]
    return np.array(of["coefficients"]).reshape(2, 3), np.array(of["intercepts"])


def _judged(row: Row) -> Row:
    coefficients, intercepts = _weights()
    given = np.array([row["qrs"], row["ecg"], row["since_last_s"]])
    normal, abnormal = 1 / (1 + np.exp(-(coefficients @ given + intercepts)))
    return {"abnormal": float(abnormal), "beat": "abnormal" if abnormal > normal else "normal"}


def _alarms(judged: list[Row]) -> list[Row]:
    """Raised when beats have been abnormal in one go for some time, cleared when none has been for some."""
    raised_at: datetime | None = None
    since: datetime | None = None
    worst = 0.0
    found: list[Row] = []
    for row in judged:
        at, value = row["_time"], row["abnormal"]
        beyond = value > LIMIT
        if raised_at is None:
            worst = max(worst, value) if beyond and since is not None else value
        else:
            worst = max(worst, value) if beyond else worst
        if beyond is (raised_at is not None):
            since = None  # as it was
            continue
        since = since or at
        if at - since < (RAISED_AFTER if raised_at is None else CLEARED_AFTER):
            continue
        said = {"_time": at, "abnormal": value, "since": since, "worst": worst}
        if raised_at is None:
            found.append({**said, "alarm": "raised", "lasted": None})
            raised_at = at
        else:
            found.append({**said, "alarm": "cleared", "lasted": (at - raised_at).total_seconds()})
            raised_at = None
        since = None
    return found
