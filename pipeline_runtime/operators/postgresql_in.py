"""Source: rows that are added to a table of PostgreSQL or TimescaleDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, ConfigDict, Field, JsonValue

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.schema import COLUMNS_MAX, Field as SchemaField, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordReading, TimeReading
from pipeline_runtime.operators.columns import ColumnType, schema_of_columns
from pipeline_runtime.operators.connected import ConnectorSource
from pipeline_runtime.operators.connections import connection_field
from pipeline_runtime.operators.postgresql import PostgresqlConnection, SqlName
from pipeline_runtime.operators.sdk import Params
from pipeline_runtime.operators.ticked import table_to_read

TIME = "_time"
"""The field of a record that holds the event time. No column has such a name."""
_AHEAD_S = 86_400.0


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f'"{name}" is no time zone: write UTC or Europe/Berlin') from error
    return name


ZoneName = Annotated[str, Field(min_length=1, max_length=60), AfterValidator(_zone)]


class TableColumn(ColumnType):
    """A column of the table that becomes a column of the stream."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    from_: SqlName | None = Field(
        default=None,
        alias="from",
        title="Column of the table",
        description="the column's name in the table, if it differs; empty: the same name",
    )

    @property
    def of_table(self) -> str:
        return self.from_ or self.name


_STARTS: list[JsonValue] = [
    {"title": "With the first row", "value": "first", "help": "All rows of the table come in."},
    {"title": "With new rows", "value": "new", "help": "Only rows that are added from then on come in."},
]


class PostgresqlInParams(Params):
    connection: str = connection_field(PostgresqlConnection)
    namespace: SqlName = Field(default="public", title="Schema", description="the schema of the table")
    table: SqlName = Field(description="the table, without its schema; capital letters count")
    rising: SqlName = Field(
        title="Rising column",
        description="the column in which each new row has a greater value: a number that the table makes"
        " itself, or a time. The column needs an index, and must never be empty",
    )
    tie_column: SqlName | None = Field(
        default=None,
        title="Column that tells rows of one time apart",
        description="only with a time as rising column: a column in which rows of one time have different"
        " values, such as the primary key. It must never be empty, and needs a unique index, alone or"
        " together with the time",
    )
    columns: tuple[TableColumn, ...] = Field(
        min_length=1, max_length=COLUMNS_MAX, description="the columns of the table that you need"
    )
    key: str | None = Field(
        default=None, max_length=120, description="the column that is the record's key; empty: none"
    )
    time_column: SqlName | None = Field(
        default=None,
        title="Column with the event time",
        description="a column of the table that holds a time; empty: when the row was read",
    )
    start: Literal["first", "new"] = Field(
        default="first",
        json_schema_extra={"x-choices": _STARTS},
        description="where the element begins to read when it first starts",
    )
    every_ms: int = Field(
        default=1000,
        ge=100,
        le=3_600_000,
        title="Poll every, in milliseconds",
        description="the pause after the element has read all rows",
    )
    late_s: float = Field(
        default=5.0,
        ge=1,
        le=86_400,
        title="Longest delay of a row, in seconds",
        description="only with a time as rising column: how long after its time a row may be written. Rows"
        " wait for that long; a row that is written later does not come in",
    )
    time_zone: ZoneName = Field(
        default="UTC",
        title="Time zone of times without one",
        description="the zone of columns of the type timestamp: UTC, Europe/Berlin",
    )


class PostgresqlIn(ConnectorSource):
    """Reads the rows that are added to a table of PostgreSQL, **exactly once**.

    `rising` is the column in which each new row has a greater value. Kafka stores the element's position, in
    the transaction of the rows. So no row is missing and none comes twice, even if the node, the connection
    or the database ends at any moment.

    The numbers of a sequence may become visible in another order: a transaction that got 7 may end after the
    one that got 8. So the element notes the open transactions, and reads only rows below which all of them
    have ended. With a column that is `GENERATED ALWAYS AS IDENTITY`, these are the transactions that write to
    the table. With any other column they are all transactions of the database, even if they only read, as a
    backup does: a program may have made its number before it wrote anything. If a transaction stays open for
    more than 10 seconds while there are rows to read, the element names it.

    A rising column is one of these:

    - A whole number, numeric or a text with a unique index of its own. A sequence has to give each session
      one number at a time (`CACHE 1`, which is the default), has to rise by 1, and must not begin again.
    - A time (timestamptz, or timestamp in `time_zone`). `tie_column` then tells rows of the same time apart.
      This column is NOT NULL, and has a unique index, alone or together with the time. You can leave it out
      if the time itself has a unique index. Rows wait until their time is `late_s` ago, by the clock of the
      database. A row that is written later than that **does not come in**. So choose a `late_s` that is
      longer than the difference between clocks plus the time that rows need on their way. With the local time
      of a zone, some rows of the hour that comes twice in autumn do not come in.

    The column must be NOT NULL, and should have an index. A program that makes its own numbers or times has
    to make them within the transaction that writes them. **Rows are lost** if programs take numbers in blocks
    and use them later, as Hibernate does with its pooled optimizer. Rows are also lost if another program
    copies rows with their numbers into the table. The element refuses a table that logical replication fills.

    Only added rows come in. If a row is changed before it is read, it comes in as changed. If it is removed
    before it is read, it does not come in. Later changes do not come in. If the table is made again, or if
    its sequence begins again, the rows up to the last number that was read are lost. The element reports this
    as a gap. A row whose number is far too great has the same effect, but the element cannot see it: all rows
    below that number count as read.

    With another table, schema, rising column or tie column, the element begins as if it were new. With a
    connection to another database, it continues after the last value that it has read.

    The database user needs the right to read the table, and to see `pg_locks` and `pg_stat_activity`.
    Everybody has the latter right unless somebody took it away. The connection must lead to the primary,
    because a standby does not know the open transactions. A pooler must keep one session for one connection,
    at the primary (PgBouncer: `pool_mode = session`). You can use a partitioned table or a hypertable of
    TimescaleDB like any other table; no test runs with a hypertable yet. The element refuses a view, and a
    table with a foreign partition, because it cannot see who writes to them. It refuses a table from which
    others inherit, because no unique index holds for all of them.

    smallint, integer and bigint are whole numbers, and so is numeric without decimals. All of them, and real
    and double precision, can be read as numbers. NaN and Infinity become null. timestamptz, timestamp and
    date are times. Each type can be read as text, also arrays and json. A row of more than 900,000 bytes as
    JSON goes to the dead letters.
    """

    type = "postgresql-in"
    title = "PostgreSQL in"
    summary = "Reads the rows that are added to a table of PostgreSQL, exactly once"
    icon = "database"
    Params = PostgresqlInParams
    connector = "pipeline_runtime.connectors.postgresql_in:PostgresqlIngester"
    connection = PostgresqlConnection
    delivery = "exactly once"
    delivery_why = "The element writes its position in the transaction of the rows."
    ticks = "one"
    example = {
        "connection": "plant-database",
        "table": "orders",
        "rising": "id",
        "columns": [{"name": "line"}, {"name": "pieces", "type": "integer"}],
    }

    params: PostgresqlInParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        return table_to_read(params, ticked[0])

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return schema_of_columns(self.params.columns, self.params.key)

    def reading(self) -> RecordReading:
        """Returns where the columns are in the records that postgresql_rows.page_statement makes."""
        time = self.params.time_column
        return RecordReading(
            columns=tuple(ColumnReading(path=(column.name,)) for column in self.params.columns),
            time=None if time is None else TimeReading(path=(TIME,), format="iso"),
            ahead_s=_AHEAD_S,
        )
