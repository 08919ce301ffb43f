import { describe, expect, test } from "vitest";
import { contactOf, contactWords } from "../contact";

const HEARD = Date.parse("2026-11-23T12:00:00Z");
const FOLLOWING = { connected: true, heard: HEARD, signedOut: false, n: 7 };

const after = (second: number, change: Partial<typeof FOLLOWING> | { n: null } = {}) =>
  contactOf({ ...FOLLOWING, ...change }, HEARD + second * 1000);

describe("whether what is shown is of now", () => {
  test("a server that is silent for longer than it takes to answer is lost", () => {
    expect([1, 10, 11].map((second) => after(second))).toEqual(["live", "live", "lost"]);
  });

  test("a closed connection is told when it is not open again at once", () => {
    expect([1, 3, 4].map((second) => after(second, { connected: false }))).toEqual(["live", "live", "lost"]);
  });

  test("one that is back shows nothing new before its snapshot", () => {
    expect(after(8, { n: null })).toBe("lost");
    expect(after(0, { n: 0 })).toBe("live");
  });

  test("who is signed out is told that, and nothing else", () => {
    expect(after(60, { signedOut: true })).toBe("signed out");
    expect(contactWords("signed out", HEARD, HEARD, HEARD + 60_000)).toBeNull();
  });
});

describe("what the bar says", () => {
  const clock = new Date(HEARD).toTimeString().slice(0, 8);

  test("for how long there was no contact, and from when the figures are", () => {
    expect(contactWords("lost", HEARD, HEARD, HEARD + 14_300)).toBe(
      `No contact for 14 s; the figures are from ${clock}.`,
    );
  });

  test("figures of another day are told with their date", () => {
    const words = contactWords("lost", HEARD, HEARD, HEARD + 36 * 3_600_000) ?? "";
    expect(words).toMatch(/^No contact for 36 h; the figures are from .*2026/);
  });

  test("a page that never had contact says so, though not at once", () => {
    expect(contactWords("connecting", null, HEARD, HEARD + 2000)).toBeNull();
    expect(contactWords("connecting", null, HEARD, HEARD + 14_000)).toBe(
      "No contact for 14 s; there are no figures yet.",
    );
  });

  test("while there is contact there is no bar", () => {
    expect(contactWords("live", HEARD, HEARD, HEARD + 2000)).toBeNull();
  });
});
