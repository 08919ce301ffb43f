/** The form of a route: which alarms, to which channels, when, and what if nobody acknowledges. */
import { useState } from "react";
import { patch, post, problemText } from "../../shared/api";
import { useLive } from "../../shared/live";
import { typedNumber } from "../../shared/numbers";
import type { AlarmChannel, AlarmRoute, RouteSpec } from "../../shared/types";
import { Dialog } from "../../shared/ui/dialog";
import { Choice, Text } from "../../shared/ui/field";
import { OnCallTimes } from "./on-call";
import { onCallFault, withoutUnseenZone } from "./on-call-words";
import { Ticks } from "./ticks";
import { routeSentence } from "./words";

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function RouteForm({
  row,
  channels,
  onClose,
  onSaved,
}: {
  row: AlarmRoute | null;
  channels: readonly AlarmChannel[];
  onClose: () => void;
  onSaved: () => void;
}) {
  const { pipelines, nodes } = useLive();
  const [name, setName] = useState(row?.name ?? "");
  const [spec, setSpec] = useState<RouteSpec>(
    row?.spec ?? { channels: channels.slice(0, 1).map(({ id }) => id), severity: "warning", zone: ZONE },
  );
  const [repeat, setRepeat] = useState(String(row?.spec.repeat_min ?? 30));
  const [late, setLate] = useState(String(row?.spec.escalate_min ?? 0));
  const [wait, setWait] = useState(String(row?.spec.wait_s ?? 10));
  const [refused, setRefused] = useState("");
  const change = (part: Partial<RouteSpec>) => setSpec({ ...spec, ...part });
  const sites = [...new Set(nodes.map((node) => node.site || node.name))].sort();
  const sent: RouteSpec = {
    ...withoutUnseenZone(spec),
    repeat_min: typedNumber(repeat),
    escalate_min: typedNumber(late),
    wait_s: typedNumber(wait),
    escalate_to: typedNumber(late) > 0 ? (spec.escalate_to ?? []) : [],
  };
  const fault = (typed: string) =>
    typed.trim() !== "" && Number.isFinite(typedNumber(typed)) ? null : "a number, 0 for never";
  const wrong = [repeat, late, wait].some(fault)
    ? "Correct the red fields."
    : spec.channels.length === 0
      ? "Choose at least one channel."
      : typedNumber(late) > 0 && !spec.escalate_to?.length
        ? "Choose the channel for the escalation."
        : onCallFault(spec.on_call ?? [], spec.zone ?? "UTC");
  const faulty = wrong !== null;
  const save = () => {
    const saved = row
      ? patch(`/alarms/routes/${row.id}`, { spec: sent })
      : post("/alarms/routes", { name, spec: sent });
    saved.then(onSaved).catch((error: unknown) => setRefused(problemText(error)));
  };
  const options = channels.map((channel): [number, string] => [channel.id, channel.name]);
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={row ? `Change ${row.name}` : "New route"}
      description={wrong ?? routeSentence(sent, channels)}
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="button"
            className="button button--primary"
            disabled={faulty || (!row && !name.trim())}
            onClick={save}
          >
            {row ? "Save route" : "Create route"}
          </button>
        </>
      }
    >
      <div className="stack">
        {!row && <Text label="Name" value={name} onChange={setName} maxLength={60} autoFocus />}
        <Choice
          label="Least severity"
          value={spec.severity ?? "warning"}
          options={[
            ["info", "all alarms"],
            ["warning", "warnings and worse"],
            ["critical", "critical ones only"],
          ]}
          onChange={(severity) => change({ severity })}
        />
        <Ticks
          legend="Channels"
          options={options}
          chosen={spec.channels}
          onChange={(chosen) => change({ channels: chosen })}
        />
        <Ticks
          legend="Pipelines (none: all)"
          options={pipelines.map((each): [string, string] => [each.name, each.title])}
          chosen={spec.pipelines ?? []}
          onChange={(chosen) => change({ pipelines: chosen })}
        />
        <Ticks
          legend="Sites (none: all)"
          options={sites.map((each): [string, string] => [each, each])}
          chosen={spec.sites ?? []}
          onChange={(chosen) => change({ sites: chosen })}
        />
        <OnCallTimes
          spans={spec.on_call ?? []}
          zone={spec.zone ?? "UTC"}
          onChange={(spans, zone) => change({ on_call: spans, zone })}
        />
        <Text
          label="Seconds whose alarms are one message"
          value={wait}
          onChange={setWait}
          fault={fault(wait)}
          maxLength={5}
          number
        />
        <Text
          label="Minutes between repetitions, until somebody acknowledges (0: never)"
          value={repeat}
          onChange={setRepeat}
          fault={fault(repeat)}
          maxLength={5}
          number
        />
        <Text
          label="Minutes after which others are told, if nobody acknowledges (0: never)"
          value={late}
          onChange={setLate}
          fault={fault(late)}
          maxLength={5}
          number
        />
        {typedNumber(late) > 0 && (
          <Ticks
            legend="The others"
            options={options}
            chosen={spec.escalate_to ?? []}
            onChange={(chosen) => change({ escalate_to: chosen })}
          />
        )}
        {refused && (
          <p className="field__error" role="alert">
            {refused}
          </p>
        )}
      </div>
    </Dialog>
  );
}
