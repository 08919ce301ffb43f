/** The fields of a tile's dialog. */
import { useEffect, type ReactNode } from "react";
import { X } from "lucide-react";
import { get } from "../shared/api";
import { typeWords } from "../shared/column-types";
import type { PipelineItem, SchemaField } from "../shared/types";
import { Choice, Text } from "../shared/ui/field";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { RANGES } from "./series";
import { fieldsOf, isDrawn, streamsOf, type Stream } from "./sources";
import type { Wish, WishedCurve } from "./wish";

export interface Fields {
  wish: Wish;
  set: (more: Partial<Wish>) => void;
}

const keyOf = ({ element, output }: Pick<Stream, "element" | "output">): string => `${element}.${output}`;

const useStreams = (pipeline: string) =>
  useLoaded(`streams ${pipeline}`, (signal) =>
    pipeline ? streamsOf(pipeline, signal) : Promise.resolve<Stream[]>([]),
  );

/** The pipeline, of those that run, and beside it what is chosen of it. The first pipeline is chosen already. */
export function PipelineFields({
  wish,
  set,
  cleared,
  children,
}: Fields & {
  /** what another pipeline sets back */
  cleared: Partial<Wish>;
  children: ReactNode;
}) {
  const { data, error } = useLoaded("pipelines", (signal) => get<PipelineItem[]>("/pipelines", signal));
  const offered = data?.filter(
    ({ name, deployed_version }) => deployed_version !== null || name === wish.pipeline,
  );
  const first = offered?.[0]?.name;
  useEffect(() => {
    if (!wish.pipeline && first) set({ pipeline: first });
  }, [wish.pipeline, first, set]);
  if (!offered) return error ? <Problem error={error} /> : <Skeleton lines={2} height={32} />;
  if (offered.length === 0)
    return <p className="muted">No pipeline is deployed, so there is nothing to show. Deploy one first.</p>;
  return (
    <div className="wall-fields">
      <Choice
        label="Pipeline"
        value={wish.pipeline}
        options={offered.map(({ name, title }) => [name, title])}
        onChange={(pipeline) => set({ ...cleared, pipeline })}
      />
      {children}
    </div>
  );
}

/** The pipeline, and which of its streams. What can only be one thing is chosen already. */
export function SourceFields({ wish, set }: Fields) {
  const { data: streams, error } = useStreams(wish.pipeline);
  const stream = streams?.find((each) => keyOf(each) === keyOf(wish)) ?? streams?.at(-1);
  const chosen = stream && keyOf(stream);
  useEffect(() => {
    if (stream && chosen !== keyOf(wish))
      set({ element: stream.element, output: stream.output, columns: [] });
  }, [stream, chosen, wish, set]);
  return (
    <PipelineFields wish={wish} set={set} cleared={{ element: "", output: "", columns: [] }}>
      {wish.kind !== "picture" && streams && streams.length > 0 && (
        <Choice
          label="Rows of"
          value={chosen ?? ""}
          options={streams.map((each) => [keyOf(each), each.title])}
          onChange={(key) => {
            const next = streams.find((each) => keyOf(each) === key);
            if (next) set({ element: next.element, output: next.output, columns: [] });
          }}
        />
      )}
      {error && !streams ? <Problem error={error} /> : null}
    </PipelineFields>
  );
}

/** The columns of the stream that is chosen; undefined while they are asked for. */
function useFields(wish: Wish): { fields: SchemaField[] | undefined; error: unknown } {
  const { data: streams } = useStreams(wish.pipeline);
  const stream = streams?.find((each) => keyOf(each) === keyOf(wish));
  const { data, error } = useLoaded(`fields ${wish.pipeline} ${stream && keyOf(stream)}`, (signal) =>
    stream ? fieldsOf(wish.pipeline, stream, signal) : Promise.resolve(undefined),
  );
  return { fields: data, error };
}

function Columns({
  wish,
  drawn,
  chosen,
  onToggle,
}: {
  wish: Wish;
  /** only numbers */
  drawn: boolean;
  chosen: (name: string) => boolean;
  onToggle: (field: SchemaField) => void;
}) {
  const { fields, error } = useFields(wish);
  if (!fields) return error ? <Problem error={error} /> : <Skeleton lines={1} height={32} />;
  const offered = drawn ? fields.filter(isDrawn) : fields;
  if (offered.length === 0)
    return (
      <p className="muted">
        {fields.length === 0
          ? "Its columns are known when it has written a row."
          : "It has no column of numbers."}
      </p>
    );
  return (
    <fieldset className="wall-columns">
      <legend className="field__label">{drawn ? "Columns of numbers" : "Columns"}</legend>
      {offered.map((field) => (
        <button
          key={field.name}
          type="button"
          className="button button--small"
          aria-pressed={chosen(field.name)}
          title={typeWords(field.type)}
          onClick={() => onToggle(field)}
        >
          {field.name}
          {field.unit && <span className="muted"> {field.unit}</span>}
        </button>
      ))}
    </fieldset>
  );
}

export function ChartFields({ wish, set }: Fields) {
  const { fields } = useFields(wish);
  const here = (curve: WishedCurve) => curve.pipeline === wish.pipeline && keyOf(curve) === keyOf(wish);
  const toggle = ({ name }: SchemaField) => {
    const known = wish.curves.some((curve) => here(curve) && curve.column === name);
    const { pipeline, element, output } = wish;
    const added = { pipeline, element, output, column: name, by: null, key: null };
    set({
      curves: known
        ? wish.curves.filter((curve) => !(here(curve) && curve.column === name))
        : [...wish.curves, { ...added, axis: "left", compare_yesterday: false }],
    });
  };
  const change = (index: number, more: Partial<WishedCurve>) =>
    set({ curves: wish.curves.map((curve, place) => (place === index ? { ...curve, ...more } : curve)) });
  const texts = fields?.filter((field) => !isDrawn(field) && field.type !== "timestamp") ?? [];
  return (
    <>
      <Columns
        wish={wish}
        drawn
        chosen={(name) => wish.curves.some((curve) => here(curve) && curve.column === name)}
        onToggle={toggle}
      />
      {wish.curves.length > 0 && (
        <ul className="wall-curves" aria-label="Curves of the chart">
          {wish.curves.map((curve, index) => (
            <Curve
              key={`${curve.pipeline} ${keyOf(curve)} ${curve.column}`}
              curve={curve}
              texts={here(curve) ? texts : []}
              change={(more) => change(index, more)}
              remove={() => set({ curves: wish.curves.filter((each) => each !== curve) })}
            />
          ))}
        </ul>
      )}
      <Choice
        label="Time"
        value={String(wish.range_s)}
        options={[
          ...RANGES.map(([seconds, words]): [string, string] => [String(seconds), `Last ${words}`]),
          ...(RANGES.some(([seconds]) => seconds === wish.range_s)
            ? []
            : [[String(wish.range_s), `Last ${wish.range_s} s`] satisfies [string, string]]),
        ]}
        onChange={(range) => set({ range_s: Number(range) })}
      />
    </>
  );
}

function Curve({
  curve,
  texts,
  change,
  remove,
}: {
  curve: WishedCurve;
  /** the columns whose values may each get a curve */
  texts: SchemaField[];
  change: (more: Partial<WishedCurve>) => void;
  remove: () => void;
}) {
  const bys = [...new Set([...texts.map(({ name }) => name), ...(curve.by ? [curve.by] : [])])];
  return (
    <li>
      <span className="wall-curves__name mono ellipsis" title={`${curve.element} ${curve.column}`}>
        {curve.column}
      </span>
      {bys.length > 0 && (
        <select
          className="select select--short"
          aria-label={`Curves of ${curve.column}`}
          value={curve.by ?? ""}
          onChange={(event) => change({ by: event.target.value || null })}
        >
          <option value="">one curve</option>
          {bys.map((name) => (
            <option key={name} value={name}>
              one for each {name}
            </option>
          ))}
        </select>
      )}
      <select
        className="select select--short"
        aria-label={`Axis of ${curve.column}`}
        value={curve.axis}
        onChange={(event) => change({ axis: event.target.value as WishedCurve["axis"] })}
      >
        <option value="left">left axis</option>
        <option value="right">right axis</option>
      </select>
      <label className="check">
        <input
          type="checkbox"
          checked={curve.compare_yesterday}
          aria-label={`Compare ${curve.column} with the day before`}
          onChange={(event) => change({ compare_yesterday: event.target.checked })}
        />
        with the day before
      </label>
      <button
        type="button"
        className="button button--quiet button--icon button--small"
        aria-label={`Remove ${curve.column}`}
        onClick={remove}
      >
        <X aria-hidden="true" />
      </button>
    </li>
  );
}

export function FigureFields({ wish, set }: Fields) {
  return (
    <>
      <Columns
        wish={wish}
        drawn={false}
        chosen={(name) => wish.columns.includes(name)}
        onToggle={({ name, unit }) => set({ columns: [name], unit: unit ?? "" })}
      />
      <div className="wall-fields">
        <Text
          label="Unit"
          value={wish.unit}
          onChange={(unit) => set({ unit })}
          placeholder="kW"
          maxLength={20}
        />
        <Choice
          label="Decimals"
          value={wish.decimals}
          options={[["", "As many as fit"], ...["0", "1", "2", "3"].map((n): [string, string] => [n, n])]}
          onChange={(decimals) => set({ decimals })}
        />
      </div>
    </>
  );
}

export function TableFields({ wish, set }: Fields) {
  const toggle = ({ name }: SchemaField) =>
    set({
      columns: wish.columns.includes(name)
        ? wish.columns.filter((each) => each !== name)
        : [...wish.columns, name],
    });
  return (
    <>
      <Columns wish={wish} drawn={false} chosen={(name) => wish.columns.includes(name)} onToggle={toggle} />
      <Text label="Rows" value={wish.rows} onChange={(rows) => set({ rows })} number />
    </>
  );
}

/** Numbers, or the limit of an alarm, which the tile follows when it is changed. */
export function LimitFields({ wish, set }: Fields) {
  const { data: streams } = useStreams(wish.pipeline);
  const alarms = (streams ?? []).filter(({ limit }) => limit !== null);
  const own = wish.limit_of;
  const here = own?.pipeline === wish.pipeline ? own.element : null;
  const options: [string, string][] = [
    ["", "Numbers"],
    ...alarms.map(({ element, title, limit }): [string, string] => [
      element,
      `As ${title} has it, now ${limit}`,
    ]),
    // of another pipeline, or of an alarm that is gone
    ...(own && !alarms.some(({ element }) => element === here)
      ? [[own.element, `As ${own.element} has it`] satisfies [string, string]]
      : []),
  ];
  return (
    <div className="wall-fields">
      {options.length > 1 && (
        <Choice
          label="Limit"
          value={own?.element ?? ""}
          options={options}
          onChange={(element) => set({ limit_of: element ? { pipeline: wish.pipeline, element } : null })}
        />
      )}
      {!own && (
        <>
          <Text
            label="Mark below"
            value={wish.low}
            onChange={(low) => set({ low })}
            number
            placeholder="No limit"
          />
          <Text
            label="Mark above"
            value={wish.high}
            onChange={(high) => set({ high })}
            number
            placeholder="No limit"
          />
        </>
      )}
    </div>
  );
}
