"""The operator library: the built-in operators and those of installed packages.

A package adds operators by entry points in the group `fogline.operators`, named by their `type`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import ValidationError

from pipeline_runtime.model.faults import did_you_mean, pydantic_faults
from pipeline_runtime.model.ids import DEAD, INTAKE, JOURNAL, POSITION
from pipeline_runtime.operators.sdk import FileDescriber, Operator, SchemaMismatch, ViewOperator

log = logging.getLogger(__name__)
ENTRY_POINT_GROUP = "fogline.operators"

# Also in pyproject.toml. Kept here too, because the project may run without being installed.
BUILT_IN = {
    "csv-replay": "csv_replay:CsvReplay",
    "generator": "generator:Generator",
    "kafka-in": "kafka_in:KafkaIn",
    "modbus-in": "modbus:ModbusIn",
    "http-in": "http:HttpIn",
    "mqtt-in": "mqtt:MqttIn",
    "opcua-in": "opcua:OpcUaIn",
    "other-kafka-in": "other_kafka:OtherKafkaIn",
    "postgresql-in": "postgresql_in:PostgresqlIn",
    "http-poll": "http_poll:HttpPoll",
    "filter": "filter:Filter",
    "derive": "derive:Derive",
    "select": "select:Select",
    "model": "model:Model",
    "window-aggregate": "window_aggregate:WindowAggregate",
    "keyed-aggregate": "keyed_aggregate:KeyedAggregate",
    "count-window-aggregate": "count_window_aggregate:CountWindowAggregate",
    "running-statistics": "running_statistics:RunningStatistics",
    "edge-detection": "edge_detection:EdgeDetection",
    "time-between": "time_between:TimeBetween",
    "difference": "difference:Difference",
    "last-values": "last_values:LastValues",
    "baseline-change": "baseline_change:BaselineChange",
    "trend": "trend:Trend",
    "record-around": "record_around:RecordAround",
    "record-around-events": "record_around_events:RecordAroundEvents",
    "deduplicate": "deduplicate:Deduplicate",
    "frequency-filter": "frequency_filter:FrequencyFilter",
    "peak-detection": "peak_detection:PeakDetection",
    "join": "join:Join",
    "merge": "merge:Merge",
    "threshold-alert": "threshold_alert:ThresholdAlert",
    "hysteresis-alarm": "hysteresis_alarm:HysteresisAlarm",
    "silence-alarm": "silence_alarm:SilenceAlarm",
    "csv-sink": "csv_sink:CsvSink",
    "kafka-out": "kafka_out:KafkaOut",
    "other-kafka-out": "other_kafka:OtherKafkaOut",
    "modbus-out": "modbus:ModbusOut",
    "mqtt-out": "mqtt:MqttOut",
    "sparkplug-out": "sparkplug:SparkplugOut",
    "http-out": "http:HttpOut",
    "postgresql-out": "postgresql:PostgresqlOut",
    "opcua-out": "opcua:OpcUaOut",
    "live-chart": "live_chart:LiveChart",
    "live-table": "live_table:LiveTable",
}


class OperatorUnknown(LookupError):
    """No operator has this type."""


class Registry:
    """Operators by type. Immutable. `default_registry()` returns the one of this installation."""

    def __init__(self, operators: Mapping[str, type[Operator]], failures: Mapping[str, str] | None = None):
        self._operators = dict(operators)
        self.failures = dict(failures or {})
        """Entry points that could not be loaded, and why. The administrator sees them."""

    def __contains__(self, type_: str) -> bool:
        return type_ in self._operators

    def get(self, type_: str) -> type[Operator]:
        """Returns the operator class. OperatorUnknown names similar ones."""
        try:
            return self._operators[type_]
        except KeyError:
            hint = did_you_mean(type_, self._operators)
            why = f" (its package failed to load: {self.failures[type_]})" if type_ in self.failures else ""
            raise OperatorUnknown(f'there is no operator "{type_}"{hint}{why}') from None

    def all(self) -> tuple[type[Operator], ...]:
        return tuple(self._operators.values())

    def types(self) -> tuple[str, ...]:
        return tuple(self._operators)

    def create(
        self, type_: str, params: Mapping[str, Any], describe_file: FileDescriber | None = None
    ) -> Operator:
        """Returns an operator with checked parameters.

        Raises OperatorUnknown or pydantic's ValidationError (see `parameter_faults`).
        """
        operator = self.get(type_)
        return operator(operator.Params.model_validate(dict(params)), describe_file)

    def describe(self, type_: str) -> dict[str, Any]:
        """Returns the JSON description from which the editor makes palette, forms and help."""
        operator = self.get(type_)
        return {
            "type": operator.type,
            "title": operator.title,
            "summary": operator.summary,
            "category": operator.category,
            "icon": operator.icon,
            "inputs": [asdict(port) for port in operator.inputs],
            "outputs": [asdict(port) for port in operator.outputs],
            "params_schema": params_schema(operator),
            "docs": inspect.getdoc(operator) or "",
            "example": operator.example,
            "stateful": operator.stateful,
            "follow": operator.follow,
            "delivery": operator.delivery,
            "delivery_why": operator.delivery_why,
            "ticks": operator.ticks,
            "browsed_from": operator.browsed_from,
            "follow_depends": operator.follow_depends(),
            "view": issubclass(operator, ViewOperator),
            "version": operator.version,
        }

    def describe_all(self) -> list[dict[str, Any]]:
        return [self.describe(type_) for type_ in self._operators]


@cache
def params_schema(operator: type[Operator]) -> dict[str, Any]:
    """Returns the JSON Schema of its parameters."""
    return operator.Params.model_json_schema()


def parameter_faults(operator: type[Operator], params: Any) -> list[tuple[str, str, str]]:
    """Returns (path below `params`, message, code) of everything that is wrong with the parameters."""
    try:
        operator.Params.model_validate(params)
    except ValidationError as error:
        known = operator.Params.model_fields
        return [(path, message, code) for path, message, code, _ in pydantic_faults(error, known=known)]
    return []


def mismatches(error: SchemaMismatch) -> list[SchemaMismatch]:
    """Returns the fault and all others that came with it."""
    return [error, *(fault for more in error.more for fault in mismatches(more))]


@cache
def built_in() -> Mapping[str, type[Operator]]:
    """Returns the built-in operators by type. Loaded once per process."""
    found = {}
    for type_, target in BUILT_IN.items():
        module, _, name = target.partition(":")
        found[type_] = getattr(import_module(f"pipeline_runtime.operators.{module}"), name)
    return found


@cache
def default_registry() -> Registry:
    """Returns the built-in library and every installed package's operators. Loaded once per process."""
    operators = dict(built_in())
    failures: dict[str, str] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name not in BUILT_IN:
            _load(point, operators, failures)
    return Registry(operators, failures)


def _load(point: EntryPoint, operators: dict[str, type[Operator]], failures: dict[str, str]) -> None:
    # One package that fails must not take the others' operators away.
    try:
        operator = point.load()
        _check(point.name, operator)
    except Exception as error:
        failures[point.name] = f"{type(error).__name__}: {error}"
        log.warning("operator %s of %s cannot be loaded: %s", point.name, point.value, error)
        return
    if point.name in operators:
        failures[point.name] = f"{point.value}: another package has an operator of this type already"
        return
    operators[point.name] = operator


def _check(name: str, operator: Any) -> None:
    if not (inspect.isclass(operator) and issubclass(operator, Operator)):
        raise TypeError("is not a subclass of pipeline_runtime.operators.sdk.Operator")
    missing = [
        item
        for item in ("type", "title", "summary", "category", "icon", "Params")
        if not hasattr(operator, item)
    ]
    if missing:
        raise TypeError(f"lacks the class attributes {', '.join(missing)}")
    if inspect.isabstract(operator):
        lacking = ", ".join(sorted(operator.__abstractmethods__))
        raise TypeError(f"is abstract: it does not define {lacking}")
    taken = [port.name for port in operator.outputs if port.name in (DEAD, INTAKE, JOURNAL, POSITION)]
    if taken:
        raise TypeError(
            f'has an output "{taken[0]}", which is the name of a topic that Fogline makes beside it'
        )
    if operator.type != name:
        raise TypeError(f'its type is "{operator.type}", its entry point is named "{name}"')
