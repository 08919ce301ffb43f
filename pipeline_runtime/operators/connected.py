"""The base classes of operators whose rows a connector brings or takes (docs/how-to/write-a-connector.md).

A connector is a light process of the node, beside Spark. For a source it reads from a system and writes JSON
records into the element's own topic. The group then reads that topic as it reads a user's own. For a sink it
reads the element's own stream and delivers the rows to a system.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.schema import Field, StreamSchema
from pipeline_runtime.model.spec import RecordReading
from pipeline_runtime.operators.connections import ConnectionFields, connections_of
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, TransformOperator


class ConnectedOperator(TransformOperator):
    """What both have."""

    # "module:class" of the connector. A node imports it in the connector's process alone.
    connector: ClassVar[str]
    # The kind of connection that `params.connection` names, or None if the connector needs none.
    connection: ClassVar[type[ConnectionFields] | None] = None
    delivery: ClassVar[Literal["exactly once", "at least once"]] = "at least once"
    state_params = frozenset()  # its topic stays the same whatever the parameters are

    @classmethod
    def given(cls) -> dict[str, type[ConnectionFields]]:
        """Returns the parameters that name the connections that the connector is given, each with its
        kind."""
        return connections_of(cls)

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[Field]
    ) -> dict[str, Any]:
        """Returns the parameters with what a user has ticked among what its system has. `params` are those of
        a draft, so they may be incomplete and wrong. `columns` are those of the input. An operator with
        `ticks` has it. Raises ValueError with words for the user if the things do not go together."""
        raise NotImplementedError


class ConnectorSource(ConnectedOperator):
    """Rows come by an ingester (connectors.sdk.Ingester): at least once up to the element's own topic, and
    exactly once from there on. With `delivery = "exactly once"` its ingester is a
    connectors.sdk.OnceIngester."""

    category = "sources"
    inputs = ()
    external = "in"
    delivery_why = "After a failure or a move, rows that were under way may come again."
    # Why a preview may not read from its system, in words for a user; empty if it may. A system that hands a
    # row to one reader alone is not read by a preview.
    no_preview: ClassVar[str] = ""

    @classmethod
    def given(cls) -> dict[str, type[ConnectionFields]]:
        """As ConnectedOperator.given. What else its records need, their reader gets."""
        return {name: kind for name, kind in connections_of(cls).items() if name == "connection"}

    @abstractmethod
    def reading(self) -> RecordReading:
        """Returns how the ingester's records become rows: one path for each column of `output_schema`, in
        its order."""

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        """Returns the records as the runtime has read and parsed them. They are its only input."""
        return lambda inputs: next(iter(inputs.values()))


class ConnectorSink(ConnectedOperator):
    """Rows go to a deliverer (connectors.sdk.Deliverer), from the element's own stream."""

    category = "sinks"
    outputs = ()
    other_columns = "any"
    # Whether Fogline keeps a record of its own for the deliverer (connectors.sdk.Deliverer.notes): of how far
    # rows were delivered, so that a system that keeps the position cannot lose it without a word, or of a
    # mark.
    noted: ClassVar[bool] = False
    delivery_why = "After a failure or a move, the last rows may be sent again."

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        return {"in": same_row(made, named(inputs["in"].names))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return inputs["in"]

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        return lambda inputs: inputs["in"]
