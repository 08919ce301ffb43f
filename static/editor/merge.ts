/** Two people changed the same draft: bring both changes together where they do not touch the same thing. Pure. */
import type { DocElement, DocGroup, PipelineDocument } from "../shared/types";
import { elementsOf, groupsOf } from "./document";

export interface Merge {
  document: PipelineDocument;
  /** names of elements (or "metadata", "groups") that both changed, differently; yours was taken */
  conflicts: string[];
}

const same = (a: unknown, b: unknown) => stable(a) === stable(b);

/** JSON with sorted keys: the server may give the keys in another order than we sent them. */
export function stable(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(
          Object.entries(part)
            .filter(([, each]) => each !== null)
            .sort(([a], [b]) => (a < b ? -1 : 1)),
        )
      : part,
  );
}

export function mergeDocuments(
  base: PipelineDocument,
  yours: PipelineDocument,
  theirs: PipelineDocument,
): Merge {
  const conflicts: string[] = [];
  const pick = <T>(name: string, was: T, mine: T, other: T): T => {
    if (same(mine, other) || same(other, was)) return mine;
    if (!same(mine, was)) conflicts.push(name);
    return same(mine, was) ? other : mine;
  };
  const was = index(elementsOf(base));
  const mine = index(elementsOf(yours));
  const other = index(elementsOf(theirs));
  const ids = [...new Set([...mine.keys(), ...other.keys()])];
  const elements = ids.flatMap(
    (id) => pick<DocElement | undefined>(id, was.get(id), mine.get(id), other.get(id)) ?? [],
  );
  const groups = pick<DocGroup[]>("groups", groupsOf(base), groupsOf(yours), groupsOf(theirs));
  const metadata = pick("metadata", base.metadata, yours.metadata, theirs.metadata);
  const { groups: _, ...spec } = yours.spec;
  return {
    document: { ...yours, metadata, spec: { ...spec, elements, ...(groups.length ? { groups } : {}) } },
    conflicts,
  };
}

function index(elements: DocElement[]): Map<string, DocElement> {
  return new Map(elements.map((element) => [element.id, element]));
}
