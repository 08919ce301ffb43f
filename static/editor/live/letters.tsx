/** What an element could not take: its dead letters by reason, what can be done about them, and as a file. */
import { useId, useState } from "react";
import { Download, PencilLine, Redo2, Trash2 } from "lucide-react";
import { get } from "../../shared/api";
import { plural, sentence } from "../../shared/format";
import { roleReason } from "../../shared/page";
import { RawTable } from "../../shared/rows/raw-table";
import { useSettled } from "../../shared/settled";
import type { Allowed, DeadLetters as Letters, LetterGroup, PeekRecord } from "../../shared/types";
import { Ago, Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import { ActionButton } from "./action-button";
import { dropLetters, replayLetters, type Of } from "./letter-actions";
import { LetterOrders } from "./letter-orders";
import { filePath, lettersPath, lettersWords, rawRowOf } from "./letters-words";
import { MendDialog } from "./mend";
import { Nothing, Stale } from "./records";
import "./letters.css";

const EVERY_MS = 3000;

export function DeadLetters({ pipeline, element }: Of) {
  const [text, setText] = useState("");
  const settled = useSettled(text);
  const path = lettersPath(pipeline, element, settled);
  const { data, error, reload } = useLoaded(path, (signal) => get<Letters>(path, signal), EVERY_MS);
  const of = { pipeline, element };
  if (data?.looked === 0)
    return (
      <div className="stack stack--tight">
        <Nothing text="There are none. A row that cannot be read or processed, or that arrives too late, is put here with the reason. It never stops the pipeline." />
        <LetterOrders of={of} orders={data.orders} reload={reload} />
      </div>
    );
  return (
    <div className="stack stack--tight">
      <input
        className="input"
        type="search"
        aria-label="Text in the dead letters"
        placeholder="Text in the dead letters"
        maxLength={1000}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <span className="muted small" role="status">
        {data ? lettersWords(data) : ""}
      </span>
      {error !== undefined && !data && <Problem error={error} onRetry={reload} />}
      {error === undefined && !data && <Skeleton lines={4} />}
      {data && <Stale error={error} />}
      <ul className="letters" aria-label="Reasons">
        {data?.groups.map((group) => (
          <li key={group.reason}>
            <Group
              group={group}
              of={of}
              replay={data.replay}
              topics={data.topics}
              text={settled}
              path={lettersPath(pipeline, element, settled, group.reason)}
              reload={reload}
            />
          </li>
        ))}
      </ul>
      <Files pipeline={pipeline} element={element} />
      {data && <LetterOrders of={of} orders={data.orders} reload={reload} />}
    </div>
  );
}

interface GroupProps {
  group: LetterGroup;
  of: Of;
  replay: Allowed;
  /** in which the rows lie, by stream */
  topics: Letters["topics"];
  /** what the letters were searched for */
  text: string;
  /** where its newest ones are */
  path: string;
  reload: () => void;
}

/** The letters of one reason. */
function Group({ group, of, replay, topics, text, path, reload }: GroupProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <GroupHead group={group} />
      {open ? (
        <Rows path={path} reason={group.reason} />
      ) : (
        <LetterTable records={[group.newest]} topics={topics} reason={group.reason} />
      )}
      {group.count > 1 && (
        <button
          type="button"
          className="button button--small"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          {open ? "Only the newest row" : "More rows"}
        </button>
      )}
      <Actions group={group} of={of} replay={replay} text={text} reload={reload} />
    </>
  );
}

function Actions({ group, of, replay, text, reload }: Omit<GroupProps, "path" | "topics">) {
  const [mends, setMends] = useState(false);
  const refused = replay.allowed ? null : sentence(replay.reason ?? "not possible now");
  const about = `the rows: ${group.reason}`;
  const saysWhy = useId();
  const why = (role: "editor" | "operator") => (refused && !roleReason(role) ? saysWhy : undefined);
  return (
    <>
      {refused && (
        <p id={saysWhy} className="field__help">
          {refused}
        </p>
      )}
      <div className="row letters__actions" role="group" aria-label={`What to do about ${about}`}>
        <ActionButton
          title="Mend…"
          icon={<PencilLine aria-hidden="true" />}
          disabled={roleReason("editor") ?? refused}
          why={why("editor")}
          run={() => setMends(true)}
        />
        <ActionButton
          title="Replay"
          icon={<Redo2 aria-hidden="true" />}
          disabled={roleReason("operator") ?? refused}
          why={why("operator")}
          run={() => void replayLetters(of, { reason: group.reason, text }, replay).then(reload)}
        />
        <ActionButton
          title="Drop"
          icon={<Trash2 aria-hidden="true" />}
          disabled={roleReason("operator")}
          run={() => void dropLetters(of, { reason: group.reason, text }).then(reload)}
        />
        {mends && (
          <MendDialog
            of={of}
            reason={group.reason}
            text={text}
            note={replay.note}
            onClose={(done) => {
              setMends(false);
              if (done) reload();
            }}
          />
        )}
      </div>
    </>
  );
}

function Rows({ path, reason }: { path: string; reason: string }) {
  const { data, error, reload } = useLoaded(path, (signal) => get<Letters>(path, signal), EVERY_MS);
  if (!data) return error === undefined ? <Skeleton lines={3} /> : <Problem error={error} onRetry={reload} />;
  return <LetterTable records={[...data.records].reverse()} topics={data.topics} reason={reason} />;
}

function GroupHead({ group }: { group: LetterGroup }) {
  return (
    <div className="letters__head">
      <b>{group.reason}</b>
      <span className="muted small num">
        {plural(group.count, "row")} · <Ago at={group.newest.at} prefix="newest " />
      </span>
    </div>
  );
}

interface TableProps {
  records: readonly PeekRecord[];
  topics: Letters["topics"];
  /** of all of them */
  reason: string;
}

function LetterTable({ records, topics, reason }: TableProps) {
  const label = records.length > 1 ? "The newest rows" : "The newest row";
  return <RawTable label={`${label}: ${reason}`} raws={records.map((record) => rawRowOf(record, topics))} />;
}

function Files({ pipeline, element }: Of) {
  const link = (format: "csv" | "json-lines", words: string) => (
    <a
      className="button button--small"
      href={filePath(pipeline, element, format)}
      title="All dead letters, of more than 100,000 the newest"
      download
    >
      <Download aria-hidden="true" />
      {words}
    </a>
  );
  return (
    <div className="row" role="group" aria-label="Download the dead letters">
      {link("csv", "CSV")}
      {link("json-lines", "JSON lines")}
    </div>
  );
}
