/** To acknowledge an alarm, to silence it until a time, to end that, and to clear it by hand. */
import { useState } from "react";
import { post, problemText } from "../../shared/api";
import { roleReason } from "../../shared/page";
import type { Alarm } from "../../shared/types";
import { Dialog } from "../../shared/ui/dialog";
import { Choice, Text } from "../../shared/ui/field";
import { toast } from "../../shared/ui/toast";

const TIMES: [string, string][] = [
  ["15", "15 minutes"],
  ["60", "an hour"],
  ["480", "8 hours"],
  ["1440", "a day"],
  ["10080", "a week"],
  ["43200", "30 days"],
];
const NOTE_MAX = 500;

type Asked = "acknowledge" | "silence" | "unsilence" | "clear";
const TITLES: Record<Asked, string> = {
  acknowledge: "Acknowledge",
  silence: "Silence",
  unsilence: "End the silence",
  clear: "Clear",
};
const DONE: Record<Asked, string> = {
  acknowledge: "The alarm is acknowledged",
  silence: "The alarm is silenced",
  unsilence: "The alarm is no longer silenced",
  clear: "The alarm is cleared",
};
const MEANING: Record<Asked, string> = {
  acknowledge: "Others see that you know of it. Messages about it are no longer repeated.",
  silence:
    "Until then nobody gets a message about it, even if it is cleared and raised again. If it gets worse, the silence ends.",
  unsilence: "Messages about it are sent again.",
  clear: "It leaves the active alarms. If its cause lasts, it is raised again.",
};

/** `whole`: also what is seldom wanted. */
export function AlarmActions({
  alarm,
  onDone,
  whole = false,
}: {
  alarm: Alarm;
  onDone?: () => void;
  whole?: boolean;
}) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const locked = roleReason("operator");
  if (alarm.status === "cleared") return null;
  const may: Asked[] = [
    ...(alarm.acknowledged_at === null ? (["acknowledge"] as const) : []),
    alarm.status === "silenced" ? "unsilence" : "silence",
    ...(whole ? (["clear"] as const) : []),
  ];
  return (
    <>
      {may.map((each) => (
        <button
          key={each}
          type="button"
          className="button button--small"
          disabled={!!locked}
          title={locked ?? undefined}
          aria-label={`${TITLES[each]}: ${alarm.message}`}
          onClick={() => setAsked(each)}
        >
          {TITLES[each]}
        </button>
      ))}
      {asked && (
        <ActDialog
          alarm={alarm}
          asked={asked}
          onClose={() => setAsked(null)}
          onDone={() => {
            setAsked(null);
            onDone?.();
          }}
        />
      )}
    </>
  );
}

function ActDialog({
  alarm,
  asked,
  onClose,
  onDone,
}: {
  alarm: Alarm;
  asked: Asked;
  onClose: () => void;
  onDone: () => void;
}) {
  const [note, setNote] = useState("");
  const [minutes, setMinutes] = useState("60");
  const [refused, setRefused] = useState("");
  const send = () => {
    const until = new Date(Date.now() + Number(minutes) * 60_000).toISOString();
    post(`/alarms/${alarm.id}/${asked}`, asked === "silence" ? { note, until } : { note })
      .then(() => {
        toast({ tone: "done", title: DONE[asked] });
        onDone();
      })
      .catch((error: unknown) => setRefused(problemText(error)));
  };
  return (
    <Dialog
      open
      onClose={onClose}
      size="s"
      title={`${TITLES[asked]}: ${alarm.title}`}
      description={MEANING[asked]}
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button type="button" className="button button--primary" onClick={send}>
            {TITLES[asked]}
          </button>
        </>
      }
    >
      <div className="stack">
        <p>{alarm.message}</p>
        {asked === "silence" && <Choice label="For" value={minutes} options={TIMES} onChange={setMinutes} />}
        <Text
          label="Note"
          value={note}
          onChange={setNote}
          onEnter={send}
          placeholder="what others should know"
          maxLength={NOTE_MAX}
          autoFocus
        />
        {refused && (
          <p className="field__error" role="alert">
            {refused}
          </p>
        )}
      </div>
    </Dialog>
  );
}
