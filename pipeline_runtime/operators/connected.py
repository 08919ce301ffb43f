"""The base classes of operators whose rows a connector brings in or takes out
(docs/how-to/write-a-connector.md).

A connector is a light process of the node, beside Spark. For a source, the connector reads from an outside
system and writes JSON records into the element's own topic. The group reads this topic as it reads a user's
topic. For a sink, the connector reads the element's own stream and delivers the rows to an outside system.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.schema import Field, StreamSchema
from pipeline_runtime.model.spec import RecordReading
from pipeline_runtime.operators.connections import ConnectionFields, connections_of
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, TransformOperator


@dataclass(frozen=True)
class Sole:
    """A name by which a system knows an element, so that no other element of the pipeline may have it."""

    name: tuple[str, ...]
    """Two elements that give equal ones have one name in one system."""
    path: str
    """Where it is said, such as params.node."""
    words: str
    """For people, such as: the edge node plant/press."""


class ConnectedOperator(TransformOperator):
    """The common part of ConnectorSource and ConnectorSink."""

    # "module:class" of the connector. On a node, only the connector's process imports it.
    connector: ClassVar[str]
    # The kind of connection that `params.connection` names, or None if the connector needs none.
    connection: ClassVar[type[ConnectionFields] | None] = None
    delivery: ClassVar[Literal["exactly once", "at least once"]] = "at least once"
    state_params = frozenset()  # the element's topic stays the same whatever the parameters are

    @classmethod
    def given(cls) -> dict[str, type[ConnectionFields]]:
        """Returns the parameters whose connections the connector gets, each with its kind of connection."""
        return connections_of(cls)

    def sole(self) -> Sequence[Sole]:
        """Returns the names that no other element of the pipeline may have."""
        return ()

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[Field]
    ) -> dict[str, Any]:
        """Returns the parameters after a user has ticked items of the system. `params` are those of a draft,
        so they may be incomplete and wrong. `columns` are those of the input. Each operator with `ticks` must
        have this method. Raises ValueError with a text for the user if the items do not fit together."""
        raise NotImplementedError


class ConnectorSource(ConnectedOperator):
    """An ingester (connectors.sdk.Ingester) brings the rows into the element's own topic, at least once. From
    there on, each row counts exactly once. With `delivery = "exactly once"`, the ingester must be a
    connectors.sdk.OnceIngester."""

    category = "sources"
    inputs = ()
    external = "in"
    delivery_why = "After a failure or a move, rows that were under way may come again."
    # Why a preview must not read from the system, as text for a user; empty if it may read. For example, a
    # preview must not read from a system that gives each row to only one reader.
    no_preview: ClassVar[str] = ""

    @classmethod
    def given(cls) -> dict[str, type[ConnectionFields]]:
        """Returns the parameter `connection` only. The reader of the records gets the other connections."""
        return {name: kind for name, kind in connections_of(cls).items() if name == "connection"}

    @abstractmethod
    def reading(self) -> RecordReading:
        """Returns how the ingester's records become rows: one path for each column of `output_schema`, in
        its order."""

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        """Returns a function that passes on its only input: the records, which the runtime has already read
        and parsed."""
        return lambda inputs: next(iter(inputs.values()))


class ConnectorSink(ConnectedOperator):
    """A deliverer (connectors.sdk.Deliverer) takes the rows from the element's own stream."""

    category = "sinks"
    outputs = ()
    other_columns = "any"
    # Whether Fogline keeps a record for the deliverer (connectors.sdk.Deliverer.notes). The record may say
    # how far rows were delivered, so that nobody overlooks it if the system loses the position. It may also
    # hold a mark.
    noted: ClassVar[bool] = False
    delivery_why = "After a failure or a move, the last rows may be sent again."

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        return {"in": same_row(made, named(inputs["in"].names))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return inputs["in"]

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        return lambda inputs: inputs["in"]
