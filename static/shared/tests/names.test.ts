import { describe, expect, it } from "vitest";
import { nameFault, siteFault } from "../names";

describe("names", () => {
  it.each(["a", "machine-power", "7"])("takes %s as a name", (name) => expect(nameFault(name)).toBeNull());
  it.each(["", "-a", "a-", "A", "a b", "x".repeat(41)])("takes %s for no name", (name) =>
    expect(nameFault(name)).toContain("at most 40"),
  );
  it.each(["", "  ", "Hall 1", " Hall   1 ", "cloud_2.b-c"])("takes '%s' as a site", (name) =>
    expect(siteFault(name)).toBeNull(),
  );
  it.each(["<hall>", "-a", "Halle ä", "x".repeat(41)])("takes %s for no site", (name) =>
    expect(siteFault(name)).toContain("at most 40"),
  );
});
