/** How the rows that an element makes differ from those that are expected. Pure. */
import { plural } from "../../shared/format";
import { cellText } from "../../shared/rows/cells";
import type { ExpectedCheck, PinnedRows, RowDifference } from "../../shared/types";

const said = (value: unknown): string => cellText(value) ?? "no value";

/** "Row 3: most is 4, expected 3." */
export function differenceWords({ place, kind, cells }: RowDifference): string {
  if (kind === "missing") return `Row ${place} is missing.`;
  if (kind === "unexpected") return `Row ${place} is not expected.`;
  const parts = cells.map(
    ({ name, expected, found }) => `${name} is ${said(found)}, expected ${said(expected)}`,
  );
  return `Row ${place}: ${parts.join("; ")}.`;
}

export function letterWords(expected: number | null, found: number): string | null {
  return expected === null || expected === found
    ? null
    : `${plural(found, "dead letter")}, expected ${expected}.`;
}

const LINES = 5;

/** The first lines, and how many others there are. */
export const fewLines = (lines: readonly string[]): string[] =>
  lines.length <= LINES + 1 ? [...lines] : [...lines.slice(0, LINES), `${lines.length - LINES} more differ.`];

/** All that differs, one sentence each. */
export const checkWords = (check: ExpectedCheck): string[] => [
  ...check.differences.map(differenceWords),
  ...[letterWords(check.letters_expected, check.letters_found)].filter((each) => each !== null),
];

/** Whether elements make of their pinned rows what is expected; neither is there while a node is asked. */
export interface Checks {
  checks: ExpectedCheck[] | undefined;
  error: unknown;
}

export const isWrong = (check: ExpectedCheck): boolean =>
  check.trouble !== null || checkWords(check).length > 0;

/** Whether a person has to agree before it is deployed; null while that is not known. */
export function differs({ checks, error }: Checks): boolean | null {
  if (error !== undefined) return true;
  return checks?.some(isWrong) ?? null;
}

/** What is known of pinned rows on which a preview was made. */
export function pinnedWords(pinned: PinnedRows, dead: number): string {
  const rows = `${plural(pinned.rows, "pinned row")}${pinned.by === null ? "" : ` by ${pinned.by}`}.`;
  if (!pinned.expects) return `${rows} Nothing is expected of them yet.`;
  const differs = pinned.differences.length > 0 || letterWords(pinned.letters_expected, dead) !== null;
  return `${rows} ${differs ? "The rows differ from those that are expected." : "The rows are as expected."}`;
}
