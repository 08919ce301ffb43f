/** When a route tells: always, or in spans of hours on days, such as Mon to Fri 8 to 16 and Sat 10 to 12. */
import { useState } from "react";
import { Plus, Trash2 } from "lucide-react";
import type { OnCall } from "../../shared/types";
import { Choice, Text } from "../../shared/ui/field";
import { DAYS, SPANS_MAX, onCallWords, spanFault, spanWords, zoneFault } from "./on-call-words";
import { Ticks } from "./ticks";

const WEEK: OnCall = { days: [0, 1, 2, 3, 4], begins: "08:00", ends: "17:00" };
const WEEKEND: OnCall = { days: [5, 6], begins: "10:00", ends: "12:00" };
const ZONES = Intl.supportedValuesOf("timeZone");

export function OnCallTimes({
  spans,
  zone,
  onChange,
}: {
  spans: readonly OnCall[];
  zone: string;
  onChange: (spans: OnCall[], zone: string) => void;
}) {
  const change = (index: number, part: Partial<OnCall>) =>
    onChange(
      spans.map((span, at) => (at === index ? { ...span, ...part } : span)),
      zone,
    );
  const fault = spans.length > 0 ? zoneFault(zone) : null;
  // Those of before, if "always" was chosen and is taken back.
  const [before, setBefore] = useState<OnCall[]>([WEEK]);
  return (
    <>
      <Choice
        label="When"
        value={spans.length ? "hours" : "always"}
        options={[
          ["always", "always"],
          ["hours", "on-call times"],
        ]}
        onChange={(next) => {
          if (spans.length > 0) setBefore([...spans]);
          onChange(next === "hours" ? before : [], zone);
        }}
      />
      {spans.map((span, index) => (
        <Span
          key={index}
          name={spans.length > 1 ? `Time ${index + 1}` : "Time"}
          span={span}
          onChange={(part) => change(index, part)}
          onRemove={
            spans.length > 1
              ? () =>
                  onChange(
                    spans.filter((_, at) => at !== index),
                    zone,
                  )
              : null
          }
        />
      ))}
      {spans.length > 0 && (
        <>
          {spans.length < SPANS_MAX && (
            <button
              type="button"
              className="button button--small alarm-span-add"
              onClick={() => onChange([...spans, WEEKEND], zone)}
            >
              <Plus aria-hidden="true" />
              Add a time
            </button>
          )}
          <Text
            label="Time zone"
            value={zone}
            onChange={(next) => onChange([...spans], next)}
            known={ZONES}
            fault={fault}
            maxLength={60}
          />
          {!fault && !spans.some(spanFault) && (
            <p className="muted small">
              It sends messages {onCallWords(spans, zone)}. What is raised at another time is told when the
              next of these times begins, if it is still active.
            </p>
          )}
        </>
      )}
    </>
  );
}

function Span({
  name,
  span,
  onChange,
  onRemove,
}: {
  name: string;
  span: OnCall;
  onChange: (part: Partial<OnCall>) => void;
  onRemove: (() => void) | null;
}) {
  const fault = spanFault(span);
  return (
    <section className="stack alarm-span" aria-label={name}>
      <Ticks
        legend={`${name}: days on which it begins`}
        options={DAYS.map((day, index): [number, string] => [index, day])}
        chosen={span.days}
        onChange={(days) => onChange({ days })}
      />
      <div className="row row--wrap">
        <Text
          label="From"
          value={span.begins ?? "00:00"}
          onChange={(begins) => onChange({ begins })}
          placeholder="08:00"
          maxLength={5}
        />
        <Text
          label="To"
          value={span.ends ?? "00:00"}
          onChange={(ends) => onChange({ ends })}
          placeholder="17:00"
          maxLength={5}
        />
        {onRemove && (
          <button
            type="button"
            className="button button--small"
            aria-label={`Remove ${name}`}
            onClick={onRemove}
          >
            <Trash2 aria-hidden="true" />
            Remove
          </button>
        )}
      </div>
      <p className={fault ? "field__error" : "muted small"}>{fault ?? spanWords(span)}</p>
    </section>
  );
}
