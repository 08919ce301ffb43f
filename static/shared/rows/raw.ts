/** Rows that an element could not take, as the table of rows shows them. Pure. */
import type { RowColumn, ShownRow } from "./cells";

export interface RawRow {
  id: string;
  at: string | null;
  key: string | null;
  /** why it could not be taken; nothing where that stands above the table */
  reason?: string;
  /** the row as it came */
  raw: unknown;
  /** where it lies and since when, as a sentence */
  lies?: string;
}

const AS_IT_CAME: RowColumn[] = [{ name: "as it came", type: "string" }];

/** In columns if each row is an object of JSON, else each whole in one column. */
export function rawRows(raws: readonly RawRow[]): { columns: RowColumn[]; rows: ShownRow[] } {
  const fields = raws.map(({ raw }) => fieldsOf(raw));
  const names = new Set(fields.flatMap((each) => Object.keys(each ?? {})));
  const read = names.size > 0 && fields.every((each) => each !== null);
  const columns = read ? [...names].map((name) => ({ name })) : AS_IT_CAME;
  const rows = raws.map(({ raw, ...row }, place): ShownRow => {
    const came = typeof raw === "string" ? raw : raw == null ? "" : JSON.stringify(raw);
    const own = fields[place];
    if (!read || !own) return { ...row, values: [came] };
    return { ...row, came, values: columns.map(({ name }) => own[name]) };
  });
  return { columns, rows };
}

function fieldsOf(raw: unknown): Record<string, unknown> | null {
  if (typeof raw !== "string") return null;
  try {
    const value: unknown = JSON.parse(raw);
    const is = typeof value === "object" && value !== null && !Array.isArray(value);
    return is && !hasOtherNumber(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Returns whether a whole number in it has so many digits that it may be another one than the text says. */
const hasOtherNumber = (value: unknown): boolean =>
  typeof value === "object" && value !== null
    ? Object.values(value).some(hasOtherNumber)
    : Number.isInteger(value) && !Number.isSafeInteger(value);
