/** What a person has to look at first. Pure. */
import type { PipelineItem } from "../shared/types";

/**
 * The rows of a deployed pipeline's sources, in equal steps up to `until_ms`; null for steps without a
 * report.
 */
export interface Throughput {
  sources: string[];
  step_ms: number;
  until_ms: number;
  rows_per_s: (number | null)[];
}

const TROUBLE = new Set<string>(["failed", "attention", "silent", "lagging", "stalled", "unheard"]);

export const inTrouble = ({ status }: Pick<PipelineItem, "status">): boolean => TROUBLE.has(status);

export interface Ordered<P> {
  trouble: P[];
  running: P[];
  /** deployed, and not running: being deployed or undeployed, paused, ended */
  resting: P[];
  drafts: P[];
}

/** What is in trouble, what runs, what is deployed without running, and what is only drawn: the newest draft
 * first, the others by name. */
export function ordered<P extends Pick<PipelineItem, "name" | "status" | "deployed_version" | "updated_at">>(
  pipelines: readonly P[],
): Ordered<P> {
  const byName = [...pipelines].sort((a, b) => a.name.localeCompare(b.name));
  const rest = byName.filter((each) => !inTrouble(each));
  const deployed = rest.filter((each) => each.deployed_version !== null);
  return {
    trouble: byName.filter(inTrouble),
    running: deployed.filter((each) => each.status === "running"),
    resting: deployed.filter((each) => each.status !== "running"),
    drafts: rest
      .filter((each) => each.deployed_version === null)
      .sort((a, b) => b.updated_at.localeCompare(a.updated_at)),
  };
}
