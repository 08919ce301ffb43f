/** Whether an element's latency is a person's business. Pure. */
import type { LiveElement } from "./types";

/** Beyond so many times the target a batch in twenty is more than a machine that was busy for a moment. */
const FAR_RATIO = 2;

/**
 * Half of the batches miss the target, or one in twenty misses it by far: then a longer target, another node or less
 * load helps. A batch that is a little late now and then needs nobody.
 */
export function missesTarget({
  latency_ms_p50: usual,
  latency_ms_p95: most,
  latency_ms_target: target,
}: Pick<LiveElement, "latency_ms_p50" | "latency_ms_p95" | "latency_ms_target">): boolean {
  if (target === null) return false;
  return (usual ?? 0) > target || (most ?? 0) > FAR_RATIO * target;
}
