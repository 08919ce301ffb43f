/** Each guess about a file in words, as a control that changes it. */
import { useEffect, useId, useState, type ReactNode } from "react";
import { fix, fixLine, fixTime, type LineUse } from "./fix";
import type { Source, TimeReading } from "./types";
import type { Decision } from "./use-decision";
import {
  arrayWords,
  COMMENTS,
  DECIMALS,
  DELIMITERS,
  ESCAPES,
  including,
  JUMPS,
  kindWords,
  MARKS,
  missingOf,
  missingText,
  patternWords,
  placesOf,
  placesText,
  QUOTES,
  readingWords,
  THOUSANDS,
  TIME_FORMATS,
  type Options as Words,
} from "./words";

/** On a smaller screen the lines need the room: what was found is told in one line. */
const ROOMY = "(min-width: 1200px) and (min-height: 700px)";

export function Options({ decision }: { decision: Decision }) {
  const { reading, detection } = decision;
  const text = reading.kind === "text";
  const [open] = useState(() => window.matchMedia(ROOMY).matches);
  return (
    <details className="guesses" open={open}>
      <summary>
        How it is read <span className="muted">{readingWords(reading, decision.encodings)}</span>
      </summary>
      <div className="options">
        {(text || reading.sheet || reading.member || detection.arrays?.length) && (
          <OfFile decision={decision} />
        )}
        {(text || reading.kind === "xlsx") && <OfLines decision={decision} />}
        {text && <OfValues decision={decision} />}
        <OfTime decision={decision} />
        <OfPace decision={decision} />
      </div>
    </details>
  );
}

function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <fieldset className="options__group">
      <legend>{title}</legend>
      {children}
    </fieldset>
  );
}

function Line({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className="options__line">
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  );
}

function Select({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: string;
  options: Words;
  onChange: (value: string) => void;
}) {
  return (
    <Line label={label}>
      {(id) => (
        <select
          id={id}
          className="select select--small"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        >
          {options.map(([each, words]) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Line>
  );
}

/** A text that counts when it is left, or with Enter. */
function Text({
  label,
  value,
  known,
  empty,
  onChange,
}: {
  label: string;
  value: string;
  known?: readonly string[];
  /** what is shown while there is no text */
  empty?: string;
  onChange: (value: string) => void;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const take = () => text !== value && onChange(text);
  return (
    <Line label={label}>
      {(id) => (
        <>
          <input
            id={id}
            className="input input--small"
            value={text}
            placeholder={empty}
            list={known && `${id}-known`}
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
            onBlur={take}
            onKeyDown={(event) => event.key === "Enter" && take()}
          />
          {known && (
            <datalist id={`${id}-known`}>
              {known.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Line>
  );
}

const titled = (names: readonly string[]): Words => names.map((name) => [name, name] as const);

function OfFile({ decision }: { decision: Decision }) {
  const { reading, detection, changes, change } = decision;
  const put = (place: string) => (value: unknown) => change(fix(changes, place, value));
  const { members = [], sheets = [], arrays = [] } = detection;
  return (
    <Group title="File">
      {members.length > 1 && (
        <Select
          label="In the archive"
          value={reading.member ?? ""}
          options={titled(members)}
          onChange={put("member")}
        />
      )}
      {sheets.length > 1 && (
        <Select label="Sheet" value={reading.sheet ?? ""} options={titled(sheets)} onChange={put("sheet")} />
      )}
      {arrays.length > 1 && (
        <Select
          label="Rows are in"
          value={reading.records ?? ""}
          options={arrays.map((path) => [path, arrayWords(path)] as const)}
          onChange={put("records")}
        />
      )}
      {reading.kind === "text" && (
        <>
          <Select
            label="Characters"
            value={reading.encoding}
            options={including(decision.encodings, reading.encoding)}
            onChange={put("encoding")}
          />
          <Select
            label="Cells end at"
            value={reading.delimiter}
            options={including(DELIMITERS, reading.delimiter)}
            onChange={put("delimiter")}
          />
          {["whitespace", "places"].includes(reading.delimiter) && (
            <Text
              label="Cells begin at"
              value={placesText(reading.cuts)}
              empty="any place"
              onChange={(text) => put("cuts")(placesOf(text))}
            />
          )}
          {reading.delimiter !== "places" && (
            <Select label="Text stands in" value={reading.quote} options={QUOTES} onChange={put("quote")} />
          )}
          {reading.quote !== "" && reading.delimiter !== "places" && (
            <Select label="Quote within" value={reading.escape} options={ESCAPES} onChange={put("escape")} />
          )}
          <Select
            label="Pass over"
            value={reading.comment}
            options={including(COMMENTS, reading.comment)}
            onChange={put("comment")}
          />
        </>
      )}
    </Group>
  );
}

const LINE_WORDS_MAX = 34;

function OfLines({ decision: { reading, preview, changes, change } }: { decision: Decision }) {
  const lines: Words = (preview?.lines ?? []).map(({ number, text }) => [
    String(number),
    `${number}: ${text.length > LINE_WORDS_MAX ? `${text.slice(0, LINE_WORDS_MAX)}…` : text}`,
  ]);
  const choose = (use: LineUse) => (value: string) =>
    change(fixLine(changes, use, value === "" ? null : Number(value)));
  const end = (text: string) => {
    const line = Number(text.replace(/\D/g, ""));
    choose("last_line")(line >= reading.first_line ? String(line) : "");
  };
  const of = (line: number | null, none: string): Words =>
    including([["", none] as const, ...lines], line === null ? "" : String(line));
  return (
    <Group title="Lines">
      <Select
        label="Column names"
        value={String(reading.header_line ?? "")}
        options={of(reading.header_line, "no line has them")}
        onChange={choose("header_line")}
      />
      <Select
        label="Units"
        value={String(reading.units_line ?? "")}
        options={of(reading.units_line, "no line has them")}
        onChange={choose("units_line")}
      />
      <Select
        label="First row"
        value={String(reading.first_line)}
        options={including(lines, String(reading.first_line))}
        onChange={choose("first_line")}
      />
      <Text
        label="Last row"
        value={String(reading.last_line ?? "")}
        empty="the last of the file"
        onChange={end}
      />
      <p className="field__help">{countOfOthers(preview?.lines.map(({ kind }) => kindWords(kind)) ?? [])}</p>
    </Group>
  );
}

/** "2 lines before the table." */
function countOfOthers(kinds: readonly string[]): string {
  const before = kinds.filter((kind) => kind === "before the table").length;
  const comments = kinds.filter((kind) => kind === "comment").length;
  const say = (n: number, words: string) => n > 0 && `${n} ${n === 1 ? "line" : "lines"} ${words}`;
  const said = [say(before, "before the table"), say(comments, "of comment")].filter(Boolean);
  return said.length ? `${said.join(", ")}.` : "";
}

function OfValues({ decision: { reading, changes, change } }: { decision: Decision }) {
  const put = (place: string) => (value: unknown) => change(fix(changes, place, value));
  return (
    <Group title="Values">
      <Select label="Decimal mark" value={reading.decimal} options={DECIMALS} onChange={put("decimal")} />
      <Select
        label="Thousands"
        value={reading.thousands}
        options={THOUSANDS.filter(([mark]) => mark !== reading.decimal)}
        onChange={put("thousands")}
      />
      <Text
        label="No value"
        value={missingText(reading.missing)}
        onChange={(text) => put("missing")(missingOf(text))}
      />
      <p className="field__help">Texts that mean no value, with commas between them.</p>
    </Group>
  );
}

const ZONES: readonly string[] = ["UTC", ...Intl.supportedValuesOf("timeZone")];
const TIME_COLUMNS_MAX = 4;

function OfTime({ decision: { detection, reading, changes, change } }: { decision: Decision }) {
  const { time } = reading;
  const all = detection.reading.columns;
  const chosen = (time?.columns ?? []).map(String);
  const columns: Words = all.map(({ source, name }) => [String(source), name]);
  const sourceOf = (text: string): Source =>
    all.find(({ source }) => String(source) === text)?.source ?? text;
  const choose = (at: number) => (value: string) => {
    const next = value === "" ? chosen.slice(0, at) : chosen.map((each, n) => (n === at ? value : each));
    if (at === chosen.length && value !== "") next.push(value);
    change(fixTime(changes, next.map(sourceOf)));
  };
  const put = (next: Partial<TimeReading>) => change({ ...changes, time: { ...changes.time, ...next } });
  return (
    <Group title="Time of a row">
      {[...chosen, ...(chosen.length && chosen.length < TIME_COLUMNS_MAX ? [""] : [])].map((source, at) => (
        <Select
          key={at}
          label={at === 0 ? "Is in" : "and in"}
          value={source}
          options={[["", at === 0 ? "no column" : "no other column"], ...including(columns, source)]}
          onChange={choose(at)}
        />
      ))}
      {chosen.length === 0 && (
        <Select label="Is in" value="" options={[["", "no column"], ...columns]} onChange={choose(0)} />
      )}
      {time && <TimeText time={time} onChange={put} />}
      {!time && <p className="field__help">Rows are played evenly, at the pace that you set.</p>}
    </Group>
  );
}

const OTHER = "other";

function TimeText({ time, onChange }: { time: TimeReading; onChange: (next: Partial<TimeReading>) => void }) {
  const [own, setOwn] = useState(false);
  return (
    <>
      <Select
        label="Written as"
        value={own ? OTHER : time.format}
        options={[...including(TIME_FORMATS, time.format, patternWords), [OTHER, "another pattern"]]}
        onChange={(format) => {
          setOwn(format === OTHER);
          if (format !== OTHER) onChange({ format });
        }}
      />
      {own && <Text label="Pattern" value={time.format} onChange={(format) => onChange({ format })} />}
      <Text label="Zone" value={time.zone} known={ZONES} onChange={(zone) => onChange({ zone })} />
    </>
  );
}

function OfPace({ decision: { reading, changes, change } }: { decision: Decision }) {
  const { time } = reading;
  if (!time) return null;
  const onChange = (next: Partial<TimeReading>) => change({ ...changes, time: { ...changes.time, ...next } });
  return (
    <Group title="Order and jumps in time">
      <Select
        label="A time is"
        value={time.marks}
        options={MARKS}
        onChange={(marks) => onChange({ marks: marks as TimeReading["marks"] })}
      />
      <Select
        label="Order"
        value={time.newest_first ? "newest" : "oldest"}
        options={[
          ["oldest", "oldest row first"],
          ["newest", "newest row first"],
        ]}
        onChange={(order) => onChange({ newest_first: order === "newest" })}
      />
      <Select
        label="A jump"
        value={time.jump}
        options={JUMPS}
        onChange={(jump) =>
          onChange({
            jump: jump as TimeReading["jump"],
            jump_s: time.jump_s ?? (jump === "keep" ? null : 60),
          })
        }
      />
      {time.jump !== "keep" && (
        <Text
          label={time.jump === "cut" ? "To seconds" : "Over seconds"}
          value={String(time.jump_s ?? "")}
          onChange={(text) => Number(text) > 0 && onChange({ jump_s: Number(text) })}
        />
      )}
    </Group>
  );
}
