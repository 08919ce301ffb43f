"""Sink: a table of PostgreSQL or TimescaleDB."""

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
"""PostgreSQL would cut a longer name."""


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
    """How to reach a PostgreSQL database."""

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

    Each column of the input goes to the column of the same name. If you name key columns, a row replaces the
    row of the table that has the same key. The table then needs a unique index on exactly these columns. You
    can name a hypertable of TimescaleDB like any other table; no test runs with one yet. Its unique indexes
    contain its time column, so name the time column among the keys.

    The element stores its position in the table `fogline_positions` of the same schema, in the transaction of
    the rows. So no row is missing and none comes twice, even if the node, the connection or the database ends
    at any moment. The database user needs the right to make that table in the schema. Otherwise somebody has
    to make it before. Back up the table `fogline_positions` together with your own table. After you have
    restored both, Fogline writes the missing rows, if its stream still has them.

    A pooler between Fogline and the database must keep one session for one connection. Fogline does not
    support a pooler that shares sessions by transaction (PgBouncer: `pool_mode = transaction`).

    If the database refuses a row, the row goes to the dead letters with the database's message, and the other
    rows are written. The database refuses, for example, a value that is too long or out of range, an empty
    key, and a row that breaks a constraint. After an error, a dead letter may come twice. If the table or a
    column is missing, or if a column has a type that cannot hold the values, the element says so and writes
    nothing.

    A whole number fits bigint and numeric, and also integer and smallint if the value fits. A number fits
    double precision, and also real and numeric, which PostgreSQL rounds. Text fits text, varchar, char, uuid,
    json, jsonb, inet and enums. A time fits timestamptz, and also timestamp (in UTC). With *Make the table*,
    the table gets columns of the types bigint, double precision, text, boolean and timestamptz, and the key
    columns as primary key.
    """

    type = "postgresql-out"
    title = "PostgreSQL out"
    summary = "Writes rows into a table of PostgreSQL, exactly once"
    icon = "database"
    Params = PostgresqlOutParams
    connector = "pipeline_runtime.connectors.postgresql_out:PostgresqlDeliverer"
    connection = PostgresqlConnection
    delivery = "exactly once"
    delivery_why = "The element writes its position in the transaction of the rows."
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
