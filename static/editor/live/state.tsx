/** The state of an element, key by key. It is read on request, because it changes with each batch. */
import { useRef, useState } from "react";
import { get } from "../../shared/api";
import { instant, moment } from "../../shared/format";
import { useSettled } from "../../shared/settled";
import type { KeptKey, KeptPage } from "../../shared/types";
import { Ago, Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import { compact, keptPath, keysSay, keyText, noneSays, unfolded } from "./kept";
import { Nothing, Stale } from "./records";
import "./state.css";

const SEARCH_LENGTH_MAX = 200;

interface Place {
  pipeline: string;
  element: string;
}

export function KeptState({ pipeline, element }: Place) {
  const [words, setWords] = useState("");
  const search = useSettled(words);
  return (
    <div className="stack stack--tight">
      <input
        className="input"
        type="search"
        aria-label="Search keys"
        placeholder="Search keys"
        maxLength={SEARCH_LENGTH_MAX}
        value={words}
        onChange={(event) => setWords(event.target.value)}
      />
      <Found pipeline={pipeline} element={element} search={search} />
    </div>
  );
}

function Found({ pipeline, element, search }: Place & { search: string }) {
  const { data, error, reload } = useLoaded(`state ${pipeline} ${element} ${search}`, (signal) =>
    get<KeptPage>(keptPath(pipeline, element, search, null), signal),
  );
  if (error && !data) return <Problem error={error} onRetry={reload} />;
  if (!data) return <Skeleton lines={5} />;
  return (
    <>
      <Stale error={error} />
      <div className="row row--between">
        <span className="muted small">
          {keysSay(data)}. Read <Ago at={data.at} />; it changes with each batch.
        </span>
        <button type="button" className="button button--small" onClick={reload}>
          Read again
        </button>
      </div>
      <Pages first={data} search={search} pipeline={pipeline} element={element} />
    </>
  );
}

interface Behind {
  first: KeptPage;
  pages: KeptPage[];
  asking: boolean;
  error: unknown;
}

/** The first page, and those behind it that were asked for. */
function Pages({ pipeline, element, search, first }: Place & { search: string; first: KeptPage }) {
  // After a new reading the first page differs, and the later pages of the old one are useless. The table
  // stays, and so do its open rows.
  const [behind, setBehind] = useState<Behind>({ first, pages: [], asking: false, error: null });
  const { pages, asking, error } =
    behind.first === first ? behind : { pages: [], asking: false, error: null };
  const table = useRef<HTMLDivElement>(null);
  const last = pages.at(-1) ?? first;
  const entries = [first, ...pages].flatMap((page) => page.entries);
  const more = () => {
    setBehind({ first, pages, asking: true, error: null });
    const over = (change: Partial<Behind>) =>
      setBehind((now) => (now.first === first ? { ...now, asking: false, ...change } : now));
    get<KeptPage>(keptPath(pipeline, element, search, last.next)).then(
      (page) => {
        over({ pages: [...pages, page] });
        if (page.next === null) table.current?.focus(); // the button goes
      },
      (error: unknown) => over({ error }),
    );
  };
  return (
    <>
      {entries.length > 0 ? (
        <div
          className="table-wrap table-wrap--tall"
          ref={table}
          tabIndex={0}
          role="region"
          aria-label="State"
        >
          <KeptTable entries={entries} />
        </div>
      ) : (
        <Nothing text={noneSays(last, search)} />
      )}
      {error !== null && <Problem error={error} />}
      {last.next !== null && (
        <button
          type="button"
          className="button button--small kept-more"
          aria-disabled={asking}
          onClick={() => !asking && more()}
        >
          {asking ? "Reading…" : last.looked === null ? "Show more" : "Look through more keys"}
        </button>
      )}
    </>
  );
}

export function KeptTable({ entries }: { entries: KeptKey[] }) {
  return (
    <table className="table table--tight kept">
      <thead>
        <tr>
          <th>Key</th>
          <th>State</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry, place) => (
          // keys that were cut may look the same
          <tr key={entry.key_cut ? place : entry.key}>
            <td>{keyText(entry)}</td>
            <td>
              <Kept entry={entry} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Kept({ entry }: { entry: KeptKey }) {
  const whole = unfolded(entry);
  return (
    <>
      {whole === null ? (
        <code className="mono">{compact(entry)}</code>
      ) : (
        <details>
          <summary>
            <code className="mono">{compact(entry)}</code>
          </summary>
          <pre className="code">{whole}</pre>
          {entry.state_cut && <p className="muted">Only the beginning is shown.</p>}
        </details>
      )}
      {entry.timers.length > 0 && (
        <p className="muted" title="Its timers, in event time">
          Waits for {entry.timers.map(timer).join("; ")}
        </p>
      )}
    </>
  );
}

const timer = (at: string | null): string => {
  const then = instant(at);
  return then === null ? "a time in the far future" : moment(then);
};
