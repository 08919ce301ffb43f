/** The tab with the first rows that come to an element and leave it, before anything is deployed. */
import { useEffect, useRef, useState } from "react";
import { RefreshCw } from "lucide-react";
import { request } from "../../shared/api";
import { plural, seconds } from "../../shared/format";
import { useLive } from "../../shared/live";
import type { DocElement, ElementPreview } from "../../shared/types";
import { Problem, Skeleton, useLoaded, Warning } from "../../shared/ui/parts";
import { Tabs, type Tab } from "../../shared/ui/tabs";
import { rowsOf, useInspected } from "../inspector/inspected";
import { current, useEditor } from "../store";
import { isOnItsWay, pathKey, type Rows } from "./path";
import { Pinned } from "./pinned";
import { PreviewLetters, PreviewTable } from "./table";
import "./preview.css";

/** The draft is still for so long before a node is asked. */
const QUIET_MS = 500;
const AGAIN_MS = 500;

export function PreviewTab({ element }: { element: DocElement }) {
  const name = useEditor((state) => state.name);
  const document = useEditor((state) => state.history.present);
  const runs = useLive((state) => !!state.pipelines.find((each) => each.name === name)?.deployment);
  const kept = useInspected();
  const [pinned, setPinned] = useState(false);
  const { node } = kept;
  const key = useStill(pathKey(document, element.id));
  const rows = rowsOf(kept.rows, pinned, runs);
  const { shown, error, busy, reload } = usePreview(name, element.id, key, rows, node);
  const hasPinned = rows === "pinned" || !!shown?.pinned;
  const choose = (next: Rows) => {
    setPinned(next === "pinned");
    if (next !== "pinned") useInspected.setState({ rows: next });
  };
  const showRows = (next: Rows) => (next === rows ? reload() : choose(next));
  return (
    <div className="stack preview" aria-busy={busy}>
      <div className="row row--between row--wrap">
        {runs || hasPinned ? (
          <select
            className="select preview__rows"
            aria-label="Rows"
            value={rows}
            onChange={(event) => choose(event.target.value as Rows)}
          >
            <option value="source">Rows of the sources</option>
            {runs && <option value="running">Newest rows of what runs</option>}
            {hasPinned && <option value="pinned">Pinned rows</option>}
          </select>
        ) : (
          <span className="muted small">Nothing is deployed or written.</span>
        )}
        <NodeSelect value={node} onChange={(node) => useInspected.setState({ node })} />
        <button type="button" className="button button--small" onClick={reload} aria-disabled={busy}>
          <RefreshCw aria-hidden="true" />
          {busy ? "Asking a node…" : "Refresh"}
        </button>
      </div>
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      {error === undefined && !shown && <Skeleton lines={8} />}
      {shown && error === undefined && (
        <Pinned element={element.id} rows={rows} node={node} preview={shown} onRows={showRows} />
      )}
      {shown && error === undefined && <Found preview={shown} />}
    </div>
  );
}

/** On which node the preview runs. */
function NodeSelect({ value, onChange }: { value: string | null; onChange: (node: string | null) => void }) {
  const nodes = useLive((state) => state.nodes);
  if (nodes.length < 2) return null;
  return (
    <select
      className="select preview__rows"
      aria-label="Node of the preview"
      value={value ?? ""}
      onChange={(event) => onChange(event.target.value || null)}
    >
      <option value="">On any node</option>
      {nodes.map(({ name }) => (
        <option key={name} value={name}>
          On {name}
        </option>
      ))}
    </select>
  );
}

/** The text once it has not changed for a while. */
function useStill(text: string): string {
  const [still, setStill] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setStill(text), QUIET_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return still;
}

/** The rows of the draft before stay until those of the new one are here. */
function usePreview(pipeline: string, element: string, key: string, rows: Rows, node: string | null) {
  const last = useRef<ElementPreview | undefined>(undefined);
  const [again, setAgain] = useState(false);
  const path = `/pipelines/${encodeURIComponent(pipeline)}/elements/${encodeURIComponent(element)}/preview`;
  const { data, error, reload } = useLoaded(
    `preview ${element} ${rows} ${node} ${key}`,
    (signal) => request<ElementPreview>("POST", path, { body: { document: current(), rows, node }, signal }),
    again ? AGAIN_MS : undefined,
  );
  useEffect(() => setAgain(isOnItsWay(data)), [data]);
  if (data) last.current = data;
  const busy = (!data && error === undefined) || isOnItsWay(data);
  return { shown: data ?? last.current, error, busy, reload };
}

function Found({ preview }: { preview: ElementPreview }) {
  const { trouble, inputs, output, letters, letters_count: dead } = preview;
  const [tab, setTab] = useState(output ? "out" : "in");
  const several = inputs.length > 1;
  const tabs: Tab[] = [
    ...inputs.map((stream) => ({
      id: several ? `in ${stream.port}` : "in",
      title: several ? `In: ${stream.port}` : "In",
      content: <PreviewTable stream={stream} newest={preview.newest} />,
    })),
    ...(output
      ? [
          {
            id: "out",
            title: "Out",
            content: <PreviewTable stream={output} newest={preview.newest} nothing={nothingOf(preview)} />,
          },
        ]
      : []),
    ...(dead > 0
      ? [
          {
            id: "dead",
            title: `Dead letters: ${dead.toLocaleString("en")}`,
            content: <PreviewLetters letters={letters} count={dead} />,
          },
        ]
      : []),
  ];
  const value = tabs.some(({ id }) => id === tab) ? tab : (tabs[0]?.id ?? "out");
  return (
    <>
      {trouble && (
        <Warning>
          {trouble.message} {trouble.next}
        </Warning>
      )}
      {preview.lost.length > 0 && (
        <p className="field__help">
          Dead letters before it:{" "}
          {preview.lost.map(({ title, count }) => `${count.toLocaleString("en")} at ${title}`).join(", ")}.
        </p>
      )}
      {tabs.length > 0 && <Tabs label="Rows" value={value} onChange={setTab} tabs={tabs} />}
      <p className="field__help">
        {preview.node}, {seconds(preview.ms)}; {plural(preview.read, "row")} read
        {preview.whole ? ", which are all" : ""}.
      </p>
    </>
  );
}

function nothingOf({ whole, read }: ElementPreview): string {
  return whole
    ? "None of the rows of its sources makes one."
    : `None of the ${read.toLocaleString("en")} rows that were read makes one. More may.`;
}
