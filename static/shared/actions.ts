/** The actions on a running element. Each asks first and says its consequence, and reports the result. */
import { createElement } from "react";
import { del, elementPath, get, patch, post, put } from "./api";
import { automatic, kindWords, type WayBack } from "./handovers";
import { expectation, inSentences, leavingSentence, type Leaving } from "./forecast";
import { listed, sentence } from "./format";
import { useLive } from "./live";
import { nameIn } from "./live-reducer";
import { roleReason } from "./page";
import { standbyNodes } from "./replicas";
import { mayRun, NOT_HEARD, nameOf } from "./status";
import type {
  Allowed,
  BroughtBack,
  ClusterNode,
  Forecast,
  Handover,
  LiveElement,
  Pipeline,
  PipelineDocument,
  Strategy,
  WayOn,
} from "./types";
import { confirm } from "./ui/confirm";
import { LaterWords } from "./ui/later-words";
import { toast, toastError } from "./ui/toast";

/** Makes a pipeline that people call `title`; throws ApiError when it is refused. */
export const createFromTemplate = (title: string, template: string | null): Promise<Pipeline> =>
  template === null
    ? post<Pipeline>("/pipelines", { title })
    : post<Pipeline>(`/templates/${encodeURIComponent(template)}/pipelines`, { title });

/** The same with the document as its draft. */
export const createPipeline = (title: string, document: PipelineDocument): Promise<Pipeline> =>
  post<Pipeline>("/pipelines", { title, document });

/** Why an action is not possible now; null when it is. */
export function refusal(allowed: Allowed | undefined): string | null {
  const refused = allowed && !allowed.allowed ? sentence(allowed.reason ?? "not possible now") : null;
  return roleReason("operator") ?? refused;
}

/** Why an element cannot go to that node; null when it can. */
export function nodeRefusal(node: ClusterNode, owner: string | null): string | null {
  if (node.name === owner) return "It runs here already.";
  if (!node.heard) return NOT_HEARD;
  if (!node.up) return "The node does not answer.";
  if (!node.ready) return "The node is still starting.";
  if (node.cordoned) return "The node is cordoned: it takes no new elements.";
  if (node.leaving_until) return "The node is leaving: it takes no new elements.";
  if (node.maintenance_until) return "The node is in maintenance: it takes no new elements.";
  return null;
}

/** What moving the element to each other node will take. */
export const forecastPath = (pipeline: string, element: string): string =>
  `${elementPath(pipeline, element)}/forecast`;

/** What the server says a user should know first, as whole sentences. Empty if there is nothing to say. */
export const noteOf = (allowed: Allowed | undefined): string => allowed?.note ?? "";

/** The elements that run as one with this one and so move with it, as a sentence. */
export function groupNote(pipeline: string, element: LiveElement): string {
  const together = (useLive.getState().elements[pipeline] ?? []).filter(
    (each) => each.group === element.group && each.id !== element.id,
  );
  if (!element.group || together.length === 0) return "";
  return ` ${listed(together.map(nameOf))} ${together.length === 1 ? "runs" : "run"} as one with it and ${together.length === 1 ? "moves" : "move"} with it.`;
}

/** Orders a live migration; throws ApiError when it is refused. */
export async function migrate(
  pipeline: string,
  element: LiveElement,
  target: string,
  strategy: Strategy,
): Promise<void> {
  await post(`${elementPath(pipeline, element.id)}/migrate`, { target, strategy });
  toast({ tone: "info", title: `Moving ${nameOf(element)} to ${target}` });
}

/** Orders a live migration home for all that runs elsewhere; throws ApiError when nothing can be ordered. */
export const bringAllBack = (pipeline: string): Promise<BroughtBack> =>
  post<BroughtBack>(`/pipelines/${encodeURIComponent(pipeline)}/bring-back`);

interface Restoration {
  target: string | null;
  /** seq; null: the hot standby, or the newest checkpoint where there is none */
  checkpoint: number | null;
  rewind: boolean;
}

/** Orders a restoration or a rewind; throws ApiError when it is refused. */
export async function restore(pipeline: string, element: LiveElement, order: Restoration): Promise<void> {
  await post(`${elementPath(pipeline, element.id)}/restore`, {
    ...(order.target ? { target: order.target } : {}),
    ...(order.checkpoint === null ? {} : { checkpoint: order.checkpoint }),
    ...(order.rewind ? { rewind: true } : {}),
  });
  const name = nameOf(element);
  toast({ tone: "info", title: order.rewind ? `Rewinding ${name}` : `Restoring ${name}` });
}

/** Orders what a policy of sites advises; throws ApiError when it is refused. */
export async function changeCopies(
  pipeline: string,
  site: string,
  change: "copy" | "take-out",
): Promise<void> {
  await post(`/pipelines/${encodeURIComponent(pipeline)}/sites`, { site, change });
  toast({ tone: "info", title: `Upgrading ${pipeline}` });
}

/** Why a handover cannot be taken back now; null when it can. */
export function moveBackRefusal(element: LiveElement, node: ClusterNode | undefined): string | null {
  const refused = refusal(element.actions.migrate);
  return refused ?? (node ? nodeRefusal(node, element.node) : "That node is no longer registered.");
}

export async function moveBack(pipeline: string, element: LiveElement, back: WayBack): Promise<void> {
  const name = nameOf(element);
  const strategy = element.follow === "none" ? "stop-and-copy" : "standby";
  const how = back.instant
    ? `${back.target} still follows as a standby, so nothing is copied.`
    : strategy === "standby"
      ? `${back.target} starts as a standby and takes over when it has caught up.`
      : "It stops, its state is copied, and it starts again there; its output pauses for that time.";
  // the question is asked even without the forecast
  const forecast = await get<Forecast>(forecastPath(pipeline, element.id)).catch(() => null);
  const expected = expectation(forecast, back.target, strategy, name);
  const cost = expected ? `${how} ${inSentences(expected)}` : how;
  const agreed = await confirm({
    title: `Move ${name} back to ${back.target}?`,
    text: `${name} moves from ${element.node ?? "its node"} to ${back.target}. ${cost}${groupNote(pipeline, element)}`,
    action: `Move back to ${back.target}`,
  });
  if (!agreed) return;
  try {
    await migrate(pipeline, element, back.target, strategy);
  } catch (error) {
    toastError(`${name} was not moved back`, error);
  }
}

/** `after`: what becomes of the element then. */
export async function cancelHandover(handover: Handover, after: string): Promise<void> {
  const what = kindWords(handover).toLowerCase();
  // Fogline does not order an automatic handover again, so cancelling one needs a confirmation
  const agreed =
    !automatic(handover) ||
    (await confirm({
      title: `End the ${what} of ${nameIn(useLive.getState().elements, handover.pipeline, handover.element)}?`,
      text: after,
      action: `End the ${what}`,
      danger: true,
    }));
  if (!agreed) return;
  try {
    await post(`/handovers/${encodeURIComponent(handover.id)}/cancel`);
    toast({ tone: "info", title: "Cancelling", text: after });
  } catch (error) {
    toastError("Not cancelled", error);
  }
}

/** Orders a hot standby; throws ApiError when it is refused. */
export async function keepStandby(pipeline: string, element: LiveElement, node: string): Promise<void> {
  await post(`${elementPath(pipeline, element.id)}/standby`, { node });
  toast({
    tone: "info",
    title: `${node} becomes a standby of ${nameOf(element)}`,
    text: "It fetches the newest checkpoint and follows. The element keeps running on its node.",
  });
}

/** Drops all standbys: the one that was ordered and those that stay for a while after a move. */
export async function dropStandbys(pipeline: string, element: LiveElement): Promise<void> {
  const name = nameOf(element);
  const nodes = standbyNodes(element);
  const where = listed(nodes);
  const what = nodes.length > 1 ? "standbys" : "standby";
  const agreed = await confirm({
    title: `Drop the ${what} of ${name} on ${where}?`,
    text: `${name} keeps running on ${element.node ?? "its node"}. Without a standby, a restoration starts from a checkpoint, which takes longer, and a move has to copy the state first. You can keep a standby again at any time.${groupNote(pipeline, element)}`,
    action: `Drop the ${what} on ${where}`,
  });
  if (!agreed) return;
  try {
    await del(`${elementPath(pipeline, element.id)}/standby`);
    toast({
      tone: "done",
      title:
        nodes.length > 1
          ? `${where} are no longer standbys of ${name}`
          : `${where} is no longer a standby of ${name}`,
    });
  } catch (error) {
    toastError(nodes.length > 1 ? "The standbys were not dropped" : "The standby was not dropped", error);
  }
}

export async function setPaused(pipeline: string, element: LiveElement, paused: boolean): Promise<void> {
  const name = nameOf(element);
  const agreed =
    !paused ||
    (await confirm({
      title: `Pause ${name}?`,
      text: `${name} stops after its current batch. Rows that arrive in the meantime wait in its input and are processed when you resume it. A replayed recording stops its clock.${groupNote(pipeline, element)}`,
      action: "Pause",
    }));
  if (!agreed) return;
  try {
    await post(`${elementPath(pipeline, element.id)}/${paused ? "pause" : "resume"}`);
    toast({ tone: "done", title: paused ? `${name} pauses after its current batch` : `${name} is resumed` });
  } catch (error) {
    toastError(paused ? `${name} was not paused` : `${name} was not resumed`, error);
  }
}

/** Lets an element that stands go on, in one of the ways that its error offers. */
export async function goOn(pipeline: string, element: LiveElement, way: WayOn): Promise<void> {
  try {
    await post(`${elementPath(pipeline, element.id)}/go-on`, { way: way.id });
    toast({ tone: "done", title: `${nameOf(element)} continues`, text: way.cost });
  } catch (error) {
    toastError(`${nameOf(element)} does not continue`, error);
  }
}

export async function checkpointNow(pipeline: string, element: LiveElement): Promise<void> {
  try {
    await post(`${elementPath(pipeline, element.id)}/checkpoints`);
    toast({
      tone: "done",
      title: `Checkpoint of ${nameOf(element)} ordered`,
      text: "It is listed as soon as it is stored. If no row has arrived since the last checkpoint, none is taken.",
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
      text: `The elements on ${node.name} keep running, and it takes no new ones until you uncordon it.`,
      action: `Cordon ${node.name}`,
    }));
  if (!agreed) return;
  try {
    await post(`/nodes/${encodeURIComponent(node.name)}/${cordoned ? "cordon" : "uncordon"}`);
    toast({
      tone: "done",
      title: cordoned ? `${node.name} takes no new elements` : `${node.name} takes elements again`,
    });
  } catch (error) {
    toastError(`${node.name} was not changed`, error);
  }
}

/** Sets where the user of the element is; an empty site means unknown. Throws ApiError when it is refused. */
export async function setUserPlace(pipeline: string, element: LiveElement, site: string): Promise<void> {
  const path = `${elementPath(pipeline, element.id)}/place`;
  const at = site.trim();
  await (at ? put(path, { site: at }) : del(path));
  toast({
    tone: "done",
    title: at
      ? `The user of ${nameOf(element)} is at ${at}`
      : `The place of the user of ${nameOf(element)} is no longer known`,
  });
}

/** Sets the site of the node; throws ApiError when it is refused. */
export async function setSite(node: ClusterNode, site: string): Promise<void> {
  await patch(`/nodes/${encodeURIComponent(node.name)}`, { site });
  toast({
    tone: "done",
    title: site.trim() ? `${node.name} is at ${site.trim()}` : `${node.name} has no site`,
  });
}

/** Why the node cannot be removed now; null when it can. */
export function removalRefusal(node: ClusterNode): string | null {
  const { allowed, reason } = node.remove;
  return roleReason("admin") ?? (allowed ? null : sentence(reason ?? "not possible now"));
}

/** What removing the node does, and what it does not. */
export function removalText(node: ClusterNode): string {
  const { name } = node;
  const standbys = node.elements.filter((element) => element.role === "standby");
  return [
    `${name} leaves the list of nodes, and open invitations for its name are revoked. No pipeline runs there. The files on its disk stay.`,
    ...(standbys.length
      ? [`These elements lose their standby: ${standbys.map((element) => element.title).join(", ")}.`]
      : []),
    ...(mayRun(node)
      ? [
          `It ${node.up ? "still runs" : "may still run"}: stop it there, too. Its reports are ignored from then on.`,
        ]
      : []),
    `This does not lock the machine out: every node holds the cluster's key. To do that, change the key (FOGLINE_CLUSTER_KEY) and let all other machines join again.`,
    `You can add it again: open Nodes and choose Add a machine. A node that "make up" starts (FOGLINE_NODES) is added again at its next start.`,
  ].join(" ");
}

/** Resolves to whether it was removed. */
export async function removeNode(node: ClusterNode): Promise<boolean> {
  const agreed = await confirm({
    title: `Remove ${node.name}?`,
    text: removalText(node),
    action: `Remove ${node.name}`,
    danger: true,
  });
  if (!agreed) return false;
  try {
    await del(`/nodes/${encodeURIComponent(node.name)}`);
    return true;
  } catch (error) {
    toastError(`${node.name} was not removed`, error);
    return false;
  }
}

const SHORTLY = "The output of each pauses briefly while it moves.";
const ASKED_MAX = 4;

/** The forecasts for the first few groups that leave the node; null for each that has no answer. */
async function leavingOf(node: ClusterNode): Promise<{ leaving: Leaving[]; all: number }> {
  const { elements, nodes } = useLive.getState();
  const takes = (name: string) => {
    const target = nodes.find((each) => each.name === name);
    return !target || !nodeRefusal(target, node.name);
  };
  // elements that run as one move together
  const groups = new Map(
    node.elements
      .filter(({ role }) => role === "owner")
      .map((owned) => {
        const live = elements[owned.pipeline]?.find((each) => each.id === owned.element);
        return [`${owned.pipeline}/${live?.group ?? owned.element}`, { owned, live }] as const;
      }),
  );
  const leaving = await Promise.all(
    [...groups.values()].slice(0, ASKED_MAX).map(async ({ owned, live }): Promise<Leaving> => {
      const path = forecastPath(owned.pipeline, owned.element);
      const forecast = await get<Forecast>(path).catch(() => null);
      return {
        name: owned.title,
        way: live?.follow === "none" ? "stop-and-copy" : "standby",
        targets: Object.keys(forecast?.nodes ?? {}).filter(takes),
        forecast,
      };
    }),
  );
  return { leaving, all: groups.size };
}

export async function drain(node: ClusterNode): Promise<void> {
  const owned = node.elements.filter((element) => element.role === "owner");
  const ask = () => leavingOf(node).then(({ leaving, all }) => leavingSentence(leaving, all) || SHORTLY);
  const names = listed(owned.map((element) => element.title));
  const moves =
    owned.length === 0
      ? "It owns no elements."
      : owned.length === 1
        ? `Its element ${names} moves to another node. Nothing is lost.`
        : `Its ${owned.length} elements move to other nodes one by one: ${names}. Nothing is lost.`;
  const agreed = await confirm({
    title: `Drain ${node.name}?`,
    text: [
      `${node.name} is cordoned. ${moves}`,
      createElement(LaterWords, { key: "expected", ask, meanwhile: SHORTLY }),
    ],
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
