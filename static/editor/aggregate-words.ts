/** What an aggregate computes, in one sentence: "Average of power per minute for each machine". Pure. */
import { listed, span } from "../shared/format";
import { optionWords } from "../shared/words";

const EACH: Record<number, string> = { 1: "second", 60: "minute", 3600: "hour", 86_400: "day" };

/** The part about time, or about the number of rows; null while it is not known. */
function reach(type: string, { size_s: size, slide_s: slide, size: rows }: Record<string, unknown>) {
  if (type === "keyed-aggregate") return "so far";
  if (type === "count-window-aggregate") return typeof rows === "number" ? `of the last ${rows} rows` : null;
  if (typeof size !== "number") return null;
  if (typeof slide === "number" && slide !== size)
    return `of the last ${span(size)}, every ${EACH[slide] ?? span(slide)}`;
  return EACH[size] ? `per ${EACH[size]}` : `of every ${span(size)}`;
}

const TYPES = new Set(["window-aggregate", "keyed-aggregate", "count-window-aggregate"]);

/** Null for other elements, and while something is still to be filled in. */
export function aggregateWords(type: string, params: Record<string, unknown>): string | null {
  if (!TYPES.has(type)) return null;
  const when = reach(type, params);
  const aggregates = Array.isArray(params.aggregates) ? (params.aggregates as Record<string, unknown>[]) : [];
  const what = aggregates.map((aggregate) => {
    const name = optionWords(aggregate?.function).replace(", %", "").toLowerCase();
    return aggregate?.column ? `${name} of ${String(aggregate.column)}` : name === "count" ? "count" : null;
  });
  if (when === null || what.length === 0 || what.includes(null)) return null;
  const keys = Array.isArray(params.keys)
    ? params.keys
    : [params.key].filter((key) => typeof key === "string");
  const each = keys.length > 0 ? ` for each ${listed(keys.map(String))}` : "";
  const text = `${listed(what.map(String))} ${when}${each}`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}
