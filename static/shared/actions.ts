/** What can be done with a running element: asked first, with its consequence; told afterwards. */
import { elementPath, post } from "./api";
import { bytes, millis } from "./format";
import { useLive } from "./live";
import { roleReason } from "./page";
import { nameOf } from "./status";
import type { Allowed, ClusterNode, LiveElement } from "./types";
import { confirm } from "./ui/confirm";
import { toast, toastError } from "./ui/toast";

/** The server speaks in clauses: "it is paused already". */
function sentence(clause: string): string {
  const text = clause.charAt(0).toUpperCase() + clause.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** Why an action is not possible now; null when it is. */
export function refusal(allowed: Allowed | undefined): string | null {
  const refused = allowed && !allowed.allowed ? sentence(allowed.reason ?? "not possible now") : null;
  return roleReason("operator") ?? refused;
}

/** Why an element cannot go to that node; null when it can. */
export function nodeRefusal(node: ClusterNode, owner: string | null): string | null {
  if (node.name === owner) return "It runs here.";
  if (!node.up) return "The node is silent.";
  if (!node.ready) return "The node is still starting.";
  if (node.cordoned) return "The node is cordoned: it takes nothing new.";
  return null;
}

/** What a move will cost, from what is known of the element and of its last moves. */
export function moveCost(pipeline: string, element: LiveElement): string {
  const size = element.checkpoint?.bytes ?? element.state_bytes;
  const last = useLive
    .getState()
    .handovers.find(
      (handover) =>
        handover.pipeline === pipeline &&
        handover.group === (element.group ?? element.id) &&
        handover.gap_ms != null,
    );
  const copy = size == null ? "Its state is copied" : `About ${bytes(size)} to copy`;
  const pause =
    last?.gap_ms != null
      ? `output pauses for about ${millis(last.gap_ms)}, as the last time`
      : "output pauses for a few seconds";
  return `${copy}; ${pause}.`;
}

const noteOf = (allowed: Allowed | undefined): string => (allowed?.note ? ` ${sentence(allowed.note)}` : "");

function groupNote(pipeline: string, element: LiveElement): string {
  const together = (useLive.getState().elements[pipeline] ?? []).filter(
    (each) => each.group === element.group && each.id !== element.id,
  );
  if (!element.group || together.length === 0) return "";
  return ` ${together.map(nameOf).join(", ")} ${together.length === 1 ? "runs" : "run"} as one with it and ${together.length === 1 ? "moves" : "move"} along.`;
}

export async function migrate(pipeline: string, element: LiveElement, target: string): Promise<void> {
  const name = nameOf(element);
  const agreed = await confirm({
    title: `Migrate ${name} to ${target}?`,
    text: `${name} moves from ${element.node ?? "its node"} to ${target}. ${moveCost(pipeline, element)} Nothing is lost or repeated, and you can move it back.${groupNote(pipeline, element)}`,
    action: `Migrate to ${target}`,
  });
  if (!agreed) return;
  try {
    await post(`${elementPath(pipeline, element.id)}/migrate`, { target });
    toast({ tone: "info", title: `Moving ${name} to ${target}` });
  } catch (error) {
    toastError(`${name} was not moved`, error);
  }
}

export async function restore(
  pipeline: string,
  element: LiveElement,
  target: string | null,
  checkpoint: number | null = null,
): Promise<void> {
  const name = nameOf(element);
  const where = target ? `on ${target}` : "on a node that Fogline chooses";
  const agreed = await confirm({
    title: `Restore ${name} ${where}?`,
    text: `${name} starts ${where} from ${checkpoint === null ? "its newest checkpoint" : `the checkpoint at ${checkpoint}`}, reads on to where it had committed, and takes over. What was already written is not written again. The copy on ${element.node ?? "the old node"}, should it still run, is shut out.${groupNote(pipeline, element)}${noteOf(element.actions?.restore)}`,
    action: target ? `Restore on ${target}` : "Restore",
  });
  if (!agreed) return;
  try {
    await post(`${elementPath(pipeline, element.id)}/restore`, {
      ...(target ? { target } : {}),
      ...(checkpoint === null ? {} : { checkpoint }),
    });
    toast({ tone: "info", title: `Restoring ${name}` });
  } catch (error) {
    toastError(`${name} was not restored`, error);
  }
}

export async function setPaused(pipeline: string, element: LiveElement, paused: boolean): Promise<void> {
  const name = nameOf(element);
  const agreed =
    !paused ||
    (await confirm({
      title: `Pause ${name}?`,
      text: `${name} stops after its running batch; what arrives meanwhile waits in its input and is processed after Resume. A replayed recording stops its clock.${groupNote(pipeline, element)}`,
      action: "Pause",
    }));
  if (!agreed) return;
  try {
    await post(`${elementPath(pipeline, element.id)}/${paused ? "pause" : "resume"}`);
    toast({ tone: "done", title: paused ? `${name} pauses` : `${name} goes on` });
  } catch (error) {
    toastError(paused ? `${name} was not paused` : `${name} was not resumed`, error);
  }
}

export async function checkpointNow(pipeline: string, element: LiveElement): Promise<void> {
  try {
    await post(`${elementPath(pipeline, element.id)}/checkpoints`);
    toast({
      tone: "done",
      title: `Checkpoint of ${nameOf(element)} ordered`,
      text: "It is taken at the next commit, without a pause.",
    });
  } catch (error) {
    toastError("No checkpoint was taken", error);
  }
}

export async function setCordoned(node: ClusterNode, cordoned: boolean): Promise<void> {
  const agreed =
    !cordoned ||
    (await confirm({
      title: `Cordon ${node.name}?`,
      text: `${node.name} keeps what runs there and takes nothing new, until you uncordon it.`,
      action: `Cordon ${node.name}`,
    }));
  if (!agreed) return;
  try {
    await post(`/nodes/${encodeURIComponent(node.name)}/${cordoned ? "cordon" : "uncordon"}`);
    toast({
      tone: "done",
      title: cordoned ? `${node.name} takes nothing new` : `${node.name} takes elements again`,
    });
  } catch (error) {
    toastError(`${node.name} was not changed`, error);
  }
}

export async function drain(node: ClusterNode): Promise<void> {
  const owned = node.elements.filter((element) => element.role === "owner");
  const agreed = await confirm({
    title: `Drain ${node.name}?`,
    text: `${node.name} is cordoned, and its ${owned.length === 1 ? "element moves" : `${owned.length} elements move`} to other nodes one by one: ${owned.map((element) => element.element).join(", ") || "none now"}. Nothing is lost; output of each pauses shortly while it moves.`,
    action: `Drain ${node.name}`,
  });
  if (!agreed) return;
  try {
    await post(`/nodes/${encodeURIComponent(node.name)}/drain`);
    toast({ tone: "info", title: `Draining ${node.name}` });
  } catch (error) {
    toastError(`${node.name} was not drained`, error);
  }
}
