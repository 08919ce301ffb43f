/** What somebody did, in words: "deployed version 3". Pure. */
import { bytes, exact, listed, plural } from "../shared/format";
import type { AuditEntry } from "../shared/types";

type Detail = Record<string, unknown>;

const text = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";

const STRATEGIES: Record<string, string> = {
  standby: "with a standby",
  "stop-and-copy": "by stop and copy",
  "hot-standby": "from its standby",
  checkpoint: "from a checkpoint",
  rewind: "back to a checkpoint, with the later results written again",
};

const letters = ({ letters: count }: Detail): string => plural(Number(count), "dead letter");

const way = (detail: Detail): string => {
  const words = STRATEGIES[text(detail.strategy)];
  return words ? ` ${words}` : "";
};

const from = (detail: Detail): string => (text(detail.origin) ? ` from ${text(detail.origin)}` : "");

const switched = (what: string, enabled: unknown): string =>
  typeof enabled === "boolean" ? `switched the ${what} ${enabled ? "on" : "off"}` : `changed the ${what}`;

const ACTIONS: Record<string, (detail: Detail, entry: AuditEntry) => string> = {
  "pipeline.create": () => "created it",
  "pipeline.import": ({ version }) =>
    version ? `replaced the draft by an imported one; version ${text(version)} keeps it` : "imported it",
  "pipeline.save": (_, { times }) =>
    times === 1 ? "changed the draft" : `changed the draft (${plural(times, "save")})`,
  "pipeline.export_state": () => "exported it with its state",
  "pipeline.import_state": () => "imported it with its state",
  "pipeline.drop_state": () => "gave up the state that came with it",
  "pipeline.rename": ({ before }) => `renamed it, from ${text(before)}`,
  "pipeline.delete": () => "deleted it",
  "pipeline.follow_move": ({ elements, to }) =>
    `the draft followed a move: ${Array.isArray(elements) ? listed(elements.map(String)) : "it"} is now pinned to ${text(to)}`,
  "pipeline.copies": ({ site, change, reason }) =>
    `${change === "copy" ? "added its copies at" : "removed its copies at"} ${text(site)}${
      reason ? `, by the ${text(reason)}` : ""
    }`,
  "pipeline.version": ({ version }) => `saved version ${text(version)}`,
  "pipeline.restore_version": ({ version }) => `made version ${text(version)} the draft`,
  "pipeline.deploy": ({ version }) => `deployed version ${text(version)}`,
  "pipeline.upgrade": ({ version }) => `deployed the changes of version ${text(version)}`,
  "pipeline.undeploy": ({ again }) => (again ? "let it run again" : "undeployed it"),
  "pipeline.hurry": ({ kind }) =>
    `let the ${kind === "upgrade" ? "deployment of changes" : "undeployment"} go on without waiting for deliveries`,
  "pipeline.bring_back": ({ elements }) =>
    `brought ${Array.isArray(elements) ? listed(elements.map(String)) : "what ran elsewhere"} back`,
  "pipeline.queue_moves": ({ moves }) =>
    `ordered ${Array.isArray(moves) ? plural(moves.length, "move") : "moves"}, one after another`,
  "pipeline.cancel_moves": ({ elements }) =>
    `cancelled ${Array.isArray(elements) ? plural(elements.length, "move") : "moves"} that waited`,
  "element.migrate": (detail) => `moved it${from(detail)} to ${text(detail.to)}${way(detail)}`,
  "element.restore": (detail) => `restored it on ${text(detail.to)}${way(detail)}`,
  "element.pause": () => "paused it",
  "element.resume": () => "resumed it",
  "element.go_on": ({ way }) => `let it continue: ${text(way)}`,
  "element.checkpoint": () => "asked for a checkpoint",
  "element.place": ({ site }) =>
    site ? `set the place of its user to ${text(site)}` : "removed the place of its user",
  "element.pin_rows": ({ rows }) => `pinned ${plural(Number(rows), "row")} to it`,
  "element.unpin_rows": () => "unpinned its rows",
  "element.expect_rows": ({ rows }) => `expects ${plural(Number(rows), "row")} of it`,
  "element.drop_letters": (detail) => `dropped ${letters(detail)}`,
  "element.cancel_letters": () => "cancelled what was done about its dead letters",
  "element.put_letters_back": (detail) => `put ${letters(detail)} back`,
  "element.replay_letters": (detail) =>
    `${detail.mended ? "mended and replayed" : "replayed"} ${letters(detail)}`,
  "element.keep_standby": ({ node }) => `ordered a standby on ${text(node)}`,
  "element.drop_standby": ({ nodes }) =>
    `dropped its standby${Array.isArray(nodes) ? ` on ${listed(nodes.map(String))}` : ""}`,
  "handover.cancel": () => "cancelled its handover",
  "node.invite": () => "invited it to join",
  "node.enrol": () => "let it join",
  "node.site": ({ site }) => (site ? `set its site to ${text(site)}` : "removed its site"),
  "node.cordon": () => "cordoned it",
  "node.uncordon": ({ drain }) => (drain ? "uncordoned it, which ended its drain" : "uncordoned it"),
  "node.drain": () => "drained it",
  "node.remove": () => "removed it",
  "map.latencies": ({ sites }) =>
    `set the latencies between ${Array.isArray(sites) ? listed(sites.map(String)) : "sites"}`,
  "map.rates": ({ sites }) =>
    `set the rates between ${Array.isArray(sites) ? listed(sites.map(String)) : "sites"}`,
  "map.rates_removed": () => "removed the rates that were set",
  "map.latencies_removed": () => "removed the latencies that were set",
  "template.save": ({ pipeline }) => `saved it as a template, from ${text(pipeline)}`,
  "template.delete": () => "deleted the template",
  "policy.create": ({ mode }) =>
    `created the policy, which ${mode === "automatic" ? "acts by itself" : "advises"}`,
  "policy.change": ({ enabled }) => switched("policy", enabled),
  "policy.delete": () => "deleted the policy",
  "alarm.acknowledge": ({ note }) => `acknowledged the alarm${text(note) ? `: ${text(note)}` : ""}`,
  "alarm.silence": ({ note, until }) =>
    `silenced the alarm until ${exact(text(until))}${text(note) ? `: ${text(note)}` : ""}`,
  "alarm.unsilence": () => "ended the silence of the alarm",
  "alarm.clear": ({ note }) => `cleared the alarm${text(note) ? `: ${text(note)}` : ""}`,
  "alarm_rule.create": () => "made the rule",
  "alarm_rule.change": ({ enabled }) => switched("rule", enabled),
  "alarm_rule.delete": () => "deleted the rule",
  "alarm_channel.create": ({ kind }) => `made the channel: ${text(kind)}`,
  "alarm_channel.change": ({ enabled }) => switched("channel", enabled),
  "alarm_channel.test": () => "sent a test by the channel",
  "alarm_channel.delete": () => "deleted the channel",
  "alarm_route.create": () => "made the route",
  "alarm_route.change": ({ enabled }) => switched("route", enabled),
  "alarm_route.delete": () => "deleted the route",
  "wall.create": () => "created the wall",
  "wall.save": (_, { times }) =>
    times === 1 ? "changed the wall" : `changed the wall (${plural(times, "save")})`,
  "wall.delete": () => "deleted the wall",
  "wall.share": ({ link }) => `made the link ${text(link)} to the wall`,
  "wall.revoke": ({ link }) => `revoked the link ${text(link)} to the wall`,
  "file.upload": ({ size }) => `uploaded it${typeof size === "number" ? `, ${bytes(size)}` : ""}`,
  "file.import": () => "ordered its import",
  "file.import_again": () => "ordered its import with another reading",
  "file.cancel": () => "cancelled its import",
  "file.delete": () => "deleted it",
  "user.sign_in": () => "signed in",
  "user.create": ({ role }) => `created the account, as ${text(role)}`,
  "user.change": ({ role, active, password }) =>
    `changed the account: ${
      listed([
        ...(role ? [`role ${text(role)}`] : []),
        ...(active === false ? ["locked"] : active === true ? ["unlocked"] : []),
        ...(password ? ["a new password"] : []),
      ]) || "nothing"
    }`,
  "user.password": () => "changed their password",
  "token.create": () => "created an access token",
  "token.revoke": () => "revoked an access token",
};

/** What was done, in words; for an unknown action its name. */
export function actionWords(entry: AuditEntry): string {
  const detail = entry.detail && typeof entry.detail === "object" ? (entry.detail as Detail) : {};
  const words = ACTIONS[entry.action];
  const reason = text(detail.reason);
  return (words ? words(detail, entry) : entry.action) + (reason ? ` (${reason})` : "");
}

/** The kinds to choose from: the first word of actions and of events. */
export const AUDIT_KINDS: readonly [string, string][] = [
  ["pipeline", "Pipelines"],
  ["element", "Elements"],
  ["handover", "Handovers"],
  ["node", "Nodes"],
  ["map", "Map"],
  ["policy", "Policies"],
  ["alarm", "Alarms"],
  ["alarm_rule", "Rules of alarms"],
  ["alarm_route", "Routes of alarms"],
  ["alarm_channel", "Channels of alarms"],
  ["template", "Templates"],
  ["wall", "Walls"],
  ["file", "Files"],
  ["user", "Accounts"],
  ["token", "Access tokens"],
];

export const EVENT_KINDS: readonly [string, string][] = [
  ["pipeline", "Pipelines"],
  ["element", "Elements"],
  ["handover", "Handovers"],
  ["standby", "Standbys"],
  ["node", "Nodes"],
];

/** The pipeline and the element of an entry's target; null when it is about something else. */
export function pipelineOf({ action, target }: AuditEntry): { pipeline: string; element: string } | null {
  if (!/^(pipeline|element|handover)\./.test(action)) return null;
  const [pipeline = "", element = ""] = target.split("/", 2);
  return { pipeline, element };
}
