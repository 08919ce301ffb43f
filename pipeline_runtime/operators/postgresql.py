"""Sink: a table of PostgreSQL, also with TimescaleDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.schema import Field as SchemaField, StreamSchema
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.connected import ConnectorSink
from pipeline_runtime.operators.connections import Host, Secret, TlsFields, connection_field
from pipeline_runtime.operators.sdk import Params
from pipeline_runtime.operators.ticked import table

NAME_BYTES_MAX = 63
"""PostgreSQL cuts longer names."""


def name_fault(name: str) -> str:
    """Returns why no table, schema or column of PostgreSQL can have this name, or an empty text."""
    if not name or "\0" in name:
        return "a name has at least one character, and no zero character"
    if len(name.encode()) > NAME_BYTES_MAX:
        return f'a name in PostgreSQL has at most {NAME_BYTES_MAX} bytes: "{name[:100]}" is longer'
    return ""


def _name(name: str) -> str:
    if fault := name_fault(name):
        raise ValueError(fault)
    return name


SqlName = Annotated[str, Field(min_length=1, max_length=NAME_BYTES_MAX), AfterValidator(_name)]


class PostgresqlConnection(TlsFields):
    """How to reach a database of PostgreSQL."""

    kind = "postgresql"
    title = "PostgreSQL"
    probe = "pipeline_runtime.connectors.postgresql_tables:probe"
    search = "pipeline_runtime.connectors.postgresql_tables:search"

    host: Host
    port: int = Field(default=5432, ge=1, le=65_535, description="5432 is usual")
    database: SqlName = Field(description="the name of the database")
    user: SqlName = Field(title="User name")
    password: Secret | None = Field(default=None, title="Password")

    @property
    def where(self) -> str:
        return f'the database "{self.database}" at {self.host}, port {self.port}'


class PostgresqlOutParams(Params):
    connection: str = connection_field(PostgresqlConnection)
    namespace: SqlName = Field(default="public", title="Schema", description="the schema of the table")
    table: SqlName = Field(description="the table, without its schema; capital letters count")
    keys: tuple[ColumnName, ...] = Field(
        default=(),
        max_length=16,
        title="Key columns",
        description="a row with the same values in these columns is replaced; empty: each row is added",
    )
    time_column: SqlName | None = Field(
        default=None,
        title="Column for the event time",
        description="a column of the table that gets the event time; empty: none",
    )
    create: bool = Field(
        default=False, title="Make the table", description="make the table if it is not there"
    )


class PostgresqlOut(ConnectorSink):
    """Writes each row into a table of PostgreSQL, **exactly once**.

     Each column of the input goes to the column of the same name. With key columns a row replaces the row of
    the table that has the same key; the table needs a unique index on exactly these columns. A table of
    TimescaleDB is a table like any other: its unique indexes contain its time column, so name that among the
    keys.

     How far the element has come stands in the table `fogline_positions` of the same schema, and is written
    in the transaction of the rows. So no row is missing and none comes twice, also if the node, the
    connection or the database ends at any moment. The user needs the right to make that table in the schema,
    or somebody makes it before. Back up the table `fogline_positions` together with your own table. After
    both are restored, Fogline writes the rows that are missing, if its stream still holds them.

     A pooler between Fogline and the database has to keep one session for one connection. A pooler that
    shares by transaction (PgBouncer: `pool_mode = transaction`) is not supported.

     A row that the database does not take goes to the dead letters with the database's words, and the others
    go on: a value that is too long or out of range, a key that is empty, a constraint that is broken. A dead
    letter may come twice after an error. A table that is not there, and a column that is missing or has a
    type that cannot hold the values, is told at the element, and nothing is written.

     Types: a whole number fits bigint and numeric (also integer and smallint, if the value fits); a number
    fits double precision (real and numeric round as PostgreSQL does); text fits text, varchar, char, uuid,
    json, jsonb, inet and enums; a time fits timestamptz (and timestamp, in UTC). With *Make the table* it
    gets bigint, double precision, text, boolean and timestamptz, and the key columns as primary key.
    """

    type = "postgresql-out"
    title = "PostgreSQL out"
    summary = "Writes rows into a table of PostgreSQL or TimescaleDB, exactly once"
    icon = "database"
    Params = PostgresqlOutParams
    connector = "pipeline_runtime.connectors.postgresql_out:PostgresqlDeliverer"
    connection = PostgresqlConnection
    delivery = "exactly once"
    delivery_why = "How far it has come is written in the transaction of the rows."
    example = {"connection": "plant-database", "table": "power", "keys": ["line"], "time_column": "at"}

    ticks = "one"

    params: PostgresqlOutParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        return table(params, ticked[0], columns)

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema, params = inputs["in"], self.params
        with SchemaCheck() as check:
            for name in params.keys:
                if name != params.time_column:
                    check.column(schema, name, "params.keys")
            check.unique(params.keys, "params.keys")
            for name in schema.names:
                if fault := name_fault(name):
                    check.fail("params.table", fault)
            if params.time_column is not None and params.time_column in schema.names:
                check.fail("params.time_column", f'the input has a column "{params.time_column}" already')
        return schema
