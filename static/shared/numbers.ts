/** Numbers as people type them: with a decimal point or a decimal comma. Pure. */

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const WITH_COMMA = /^([+-]?\d*),(\d+(?:e[+-]?\d+)?)$/i;
/** "1,234" is 1.234 to some and 1234 to others. */
const TWO_WAYS = /^[+-]?[1-9]\d{0,2},\d{3}$/;

/** "80,5" -> "80.5". What is no number, or can be read in two ways, stays as it was typed. */
export function withPoint(typed: string): string {
  const text = typed.trim();
  const [, whole, decimals] = (!TWO_WAYS.test(text) && WITH_COMMA.exec(text)) || [];
  return decimals === undefined ? text : `${whole}.${decimals}`;
}

/** NaN: it is empty, no number, or can be read in two ways. */
export function typedNumber(typed: string): number {
  const text = withPoint(typed);
  const number = NUMBER.test(text) ? Number(text) : NaN;
  return Number.isFinite(number) ? number : NaN;
}

/** What somebody has to choose between; null: it cannot be read in two ways. */
export function twoWays(typed: string): string | null {
  const text = typed.trim();
  if (!TWO_WAYS.test(text)) return null;
  return `${text} can be read in two ways: type ${text.replace(",", ".")} or ${text.replace(",", "")}.`;
}
