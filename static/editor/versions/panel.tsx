import { useEffect, useMemo, useState } from "react";
import { useReactFlow } from "@xyflow/react";
import { ArrowLeft, GitCompareArrows, History, Rocket, RotateCcw, Save } from "lucide-react";
import { ago, exact } from "../../shared/format";
import { useNow } from "../../shared/clock";
import { useLive } from "../../shared/live";
import { mayAct, roleReason } from "../../shared/page";
import type { PipelineDocument, PipelineVersion, VersionItem } from "../../shared/types";
import { Problem, Skeleton, Tip, useLoaded } from "../../shared/ui/parts";
import { deployBusy, deployVersion, useDeploy } from "../deploy";
import {
  counted,
  difference,
  streamMarks,
  withRemoved,
  type Difference,
  type ValueChange,
} from "../difference";
import { emptyDocument } from "../../shared/document";

import { stable } from "../merge";
import { look, select, useEditor } from "../store";
import { showReadably } from "../view";
import {
  closeVersions,
  loadVersion,
  loadVersions,
  lookAt,
  restore,
  saveVersion,
  useVersions,
  type Against,
  type Looked,
} from "./store";
import "./versions.css";

/** The number of the running version; null when none runs. */
function useDeployedVersion(): number | null {
  const name = useEditor((state) => state.name);
  const loaded = useEditor((state) => state.pipeline?.deployed_version ?? null);
  const pushed = useLive((state) => state.pipelines.find((pipeline) => pipeline.name === name));
  return pushed ? pushed.deployed_version : loaded;
}

function useList() {
  const turn = useVersions((state) => state.turn);
  const name = useEditor((state) => state.name);
  const deployed = useDeployedVersion();
  return useLoaded(`versions ${name} ${deployed} ${turn}`, loadVersions);
}

/** In the palette's place: the draft, and the versions, newest first. */
export function VersionList() {
  const { data, error, reload } = useList();
  const looked = useVersions((state) => state.looked);
  const deployed = useDeployedVersion();
  const save = useEditor((state) => state.save);
  const now = useNow();
  return (
    <aside className="panel versions" aria-label="Versions">
      <header className="versions__head">
        <h2 className="section-title">Versions</h2>
        <button type="button" className="button button--small" onClick={closeVersions}>
          <ArrowLeft aria-hidden="true" />
          Back to editing
        </button>
      </header>
      <ol className="versions__list">
        <Entry
          looked="draft"
          title="Draft"
          chosen={looked === "draft"}
          line={
            save.state === "saved" && save.at !== null
              ? `saved ${ago(save.at, now)}`
              : "as you are editing it"
          }
        />
        {data?.map((item) => (
          <Entry
            key={item.number}
            looked={item.number}
            title={`Version ${item.number}`}
            chosen={looked === item.number}
            deployed={item.number === deployed}
            line={madeLine(item, now)}
            at={item.created_at}
            note={item.note}
          />
        ))}
      </ol>
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      {!data && error === undefined && <Skeleton lines={5} height={44} />}
      {data?.length === 0 && (
        <p className="versions__none muted small">
          There are none yet. Each deployment makes one, and you can save one at any time.
        </p>
      )}
    </aside>
  );
}

const madeLine = (item: VersionItem, now: number) =>
  `${ago(item.created_at, now)}${item.created_by ? `, by ${item.created_by}` : ""}`;

interface EntryProps {
  looked: Looked;
  title: string;
  chosen: boolean;
  line: string;
  at?: string;
  note?: string;
  deployed?: boolean;
}

function Entry({ looked, title, chosen, line, at, note, deployed }: EntryProps) {
  return (
    <li>
      <button
        type="button"
        className="version"
        aria-current={chosen ? "true" : undefined}
        onClick={() => lookAt(looked)}
      >
        <span className="row row--between">
          <b>{title}</b>
          {deployed && <span className="badge badge--accent">deployed</span>}
        </span>
        <span className="muted small num" title={at ? exact(at) : undefined}>
          {line}
        </span>
        {note && <span className="version__note small">{note}</span>}
      </button>
    </li>
  );
}

/** The two documents that are compared, and their differences. */
interface Compared {
  shown: PipelineDocument;
  before: PipelineDocument;
  /** "the version before (2)" */
  beforeName: string;
  version: PipelineVersion | null;
  found: Difference;
}

function useCompared(): { compared: Compared | null; error: unknown } {
  const { looked, against } = useVersions();
  const { data: list } = useList();
  const deployed = useDeployedVersion();
  const draft = useEditor((state) => state.history.present);
  const name = useEditor((state) => state.name);
  const operators = useEditor((state) => state.operators);
  const numbers = list?.map((item) => item.number);
  const earlier =
    looked === "draft" ? numbers?.[0] : numbers?.find((each) => looked !== null && each < looked);
  const other = against === "deployed" ? deployed : against === "draft" ? null : (earlier ?? null);
  const key = `compared ${name} ${looked} ${other} ${list !== undefined}`;
  const { data, error } = useLoaded(key, async (signal) => ({
    version: typeof looked === "number" ? await loadVersion(looked, signal) : null,
    before: other !== null ? await loadVersion(other, signal) : null,
  }));
  const compared = useMemo(() => {
    if (!data || !list) return null;
    const shown = data.version?.document ?? draft;
    const before = against === "draft" ? draft : (data.before?.document ?? emptyDocument(name));
    const beforeName =
      against === "draft" ? "the draft" : data.before ? `version ${data.before.number}` : "nothing";
    return { shown, before, beforeName, version: data.version, found: difference(before, shown, operators) };
  }, [data, list, draft, against, name, operators]);
  return { compared, error };
}

const WORDS = { added: "Added", changed: "Changed", removed: "Removed" } as const;

/** In the inspector's place: what the version changes, in words, and what can be done with it. */
export function VersionDetails() {
  const { looked, against } = useVersions();
  const { compared, error } = useCompared();
  const flow = useReactFlow();
  const deployed = useDeployedVersion();
  useEffect(() => {
    if (!compared) return;
    const marks = Object.fromEntries(compared.found.elements.map(({ id, change }) => [id, change]));
    const { shown, before } = compared;
    look({ document: withRemoved(shown, before), marks, streams: streamMarks(before, shown) });
    window.setTimeout(() => showReadably(flow), 60);
  }, [compared, flow]);
  const same = against === "deployed" && deployed === null;
  return (
    <aside className="panel panel--inspector" aria-label="What it changes">
      <div className="inspector">
        <header className="inspector__head">
          <div className="inspector__names">
            <h2 className="inspector__heading">{looked === "draft" ? "Draft" : `Version ${looked}`}</h2>
            <span className="muted small">
              {compared?.version ? (
                <Made item={compared.version} />
              ) : (
                looked === "draft" && "not a version yet"
              )}
            </span>
          </div>
        </header>
        <div className="inspector__body stack">
          {error !== undefined && <Problem error={error} />}
          {compared?.version && <VersionActions version={compared.version} deployed={deployed} />}
          {looked === "draft" && compared && <SaveVersion />}
          <label className="field">
            <span className="field__label">Compare with</span>
            <select
              className="select"
              value={against}
              onChange={(event) => useVersions.setState({ against: event.target.value as Against })}
            >
              <option value="before">
                {looked === "draft" ? "The newest version" : "The version before"}
              </option>
              {looked !== "draft" && <option value="draft">The draft</option>}
              <option value="deployed" disabled={deployed === null}>
                {deployed === null ? "The running version (none)" : `The running version (${deployed})`}
              </option>
            </select>
          </label>
          {!compared && error === undefined && <Skeleton lines={5} />}
          {compared && !same && <Changes compared={compared} />}
        </div>
      </div>
    </aside>
  );
}

function Made({ item }: { item: VersionItem }) {
  const now = useNow();
  return (
    <>
      <time title={exact(item.created_at)}>{madeLine(item, now)}</time>
      {item.note && <> · {item.note}</>}
    </>
  );
}

function Changes({ compared }: { compared: Compared }) {
  const { found, beforeName } = compared;
  const none = found.elements.length === 0 && found.pipeline.length === 0;
  return (
    <section className="stack" aria-label="Changes">
      <h3 className="section-title">
        {none ? `The same as ${beforeName}` : `Against ${beforeName}: ${counted(found)}`}
      </h3>
      {none && <p className="field__help">The places of elements on the canvas do not count.</p>}
      <ul className="plain-list stack stack--tight">
        {found.elements.map((each) => (
          <li key={each.id} className={`diff diff--${each.change}`}>
            <span className="row">
              <button type="button" className="link" onClick={() => select([each.id])}>
                {each.name}
              </button>
              <span className="diff__word small">{WORDS[each.change].toLowerCase()}</span>
            </span>
            <Values changes={each.changes} />
          </li>
        ))}
        {found.pipeline.length > 0 && (
          <li className="diff diff--changed">
            <b>The pipeline</b>
            <Values changes={found.pipeline} />
          </li>
        )}
      </ul>
    </section>
  );
}

function Values({ changes }: { changes: ValueChange[] }) {
  if (changes.length === 0) return null;
  return (
    <dl className="diff__values">
      {changes.map(({ what, from, to }, index) => (
        <div key={index}>
          <dt>{what}</dt>
          <dd>
            {from !== null && <del>{from}</del>}
            {from !== null && to !== null && (
              <>
                <span aria-hidden="true"> → </span>
                <span className="visually-hidden"> to </span>
              </>
            )}
            {to !== null && <ins>{to}</ins>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function VersionActions({ version, deployed }: { version: PipelineVersion; deployed: number | null }) {
  const busy = deployBusy(useDeploy());
  const isDraft = useEditor((state) => stable(state.history.present) === stable(version.document));
  const locked = roleReason("editor");
  const noRestore = locked ?? (isDraft ? "The draft is this version already." : null);
  const noDeploy = locked ?? (version.number === deployed ? "This version runs already." : null);
  return (
    <div className="versions__actions">
      <Tip
        text={
          noRestore ?? "Make it the draft. The present draft is kept as a version, and Ctrl Z brings it back."
        }
      >
        <button
          type="button"
          className="button"
          aria-disabled={noRestore !== null}
          onClick={() => noRestore === null && void restore(version)}
        >
          <RotateCcw aria-hidden="true" />
          Restore into the draft
        </button>
      </Tip>
      <Tip text={noDeploy ?? "Run this version on the nodes. You first see what will change."}>
        <button
          type="button"
          className="button"
          aria-disabled={noDeploy !== null || busy}
          onClick={() => noDeploy === null && void deployVersion(version)}
        >
          <Rocket aria-hidden="true" />
          Deploy version {version.number}
        </button>
      </Tip>
    </div>
  );
}

const NOTE_MAX = 200;

function SaveVersion() {
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  if (!mayAct("editor")) return null;
  const save = async () => {
    setBusy(true);
    if (await saveVersion(note.trim())) setNote("");
    setBusy(false);
  };
  return (
    <form
      className="stack stack--tight"
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) void save();
      }}
    >
      <label className="field">
        <span className="field__label">Note</span>
        <input
          className="input"
          maxLength={NOTE_MAX}
          placeholder="What this version is, and why"
          value={note}
          onChange={(event) => setNote(event.target.value)}
        />
      </label>
      <button type="submit" className="button" aria-disabled={busy}>
        <Save aria-hidden="true" />
        Save as a version
      </button>
    </form>
  );
}

/** The bar over the canvas that names the version, with the way back. */
export function VersionBanner() {
  const looked = useVersions((state) => state.looked);
  return (
    <div className="versions__banner" role="status">
      {looked === "draft" ? <GitCompareArrows aria-hidden="true" /> : <History aria-hidden="true" />}
      <span>
        {looked === "draft" ? "What the draft changes" : `Version ${looked}`}{" "}
        <span className="muted">· read only</span>
      </span>
      <span className="versions__legend small">
        {(["added", "changed", "removed"] as const).map((change) => (
          <span key={change} className={`diff__key diff--${change}`}>
            {WORDS[change].toLowerCase()}
          </span>
        ))}
      </span>
    </div>
  );
}
