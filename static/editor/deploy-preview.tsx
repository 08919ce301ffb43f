import { useEffect, useState } from "react";
import { TriangleAlert } from "lucide-react";
import { create } from "zustand";
import { plural } from "../shared/format";
import { useLive } from "../shared/live";
import type { DeployChange, PipelineDocument } from "../shared/types";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import {
  CHANGE_WORDS,
  deployRefusal,
  grouped,
  isFirst,
  nowWords,
  problemWords,
  sectionText,
  untouched,
} from "./deploy-changes";
import { ExpectedNote, useExpected } from "./preview/expected";
import { differs } from "./preview/pinned-words";
import { findElement, nameOfId } from "../shared/document";
import { giveNewIds } from "./new-ids";
import { current, select, setMode, useEditor } from "./store";

/** What is to be deployed: the draft, or a version. */
export interface Deployed {
  title: string;
  document: PipelineDocument;
  /** whether its elements can be shown in the editor: a version's elements are not those of the draft */
  isDraft: boolean;
}

interface Asked {
  changes: DeployChange[] | null;
  what: Deployed | null;
  answer: (restart: string[] | null) => void;
}

const NOTHING: Asked = { changes: null, what: null, answer: () => undefined };
const useAsked = create<Asked>(() => NOTHING);

/**
 * Shows what will happen. Resolves to the elements that may lose their state, or to null if the user does
 * not agree.
 */
export function confirmChanges(changes: DeployChange[], what: Deployed): Promise<string[] | null> {
  return new Promise((resolve) =>
    useAsked.setState({
      changes,
      what,
      answer: (restart) => {
        useAsked.setState(NOTHING);
        resolve(restart);
      },
    }),
  );
}

export function DeployPreview() {
  const { changes, what, answer } = useAsked();
  return changes && what ? <Preview changes={changes} what={what} answer={answer} /> : null;
}

interface PreviewProps {
  changes: DeployChange[];
  what: Deployed;
  answer: Asked["answer"];
}

function Preview({ changes, what, answer }: PreviewProps) {
  const expected = useExpected(what.document);
  const anyway = differs(expected);
  const [agreed, setAgreed] = useState<ReadonlySet<string>>(new Set());
  // while the pinned rows are checked: it is deployed when they are as expected
  const [ordered, setOrdered] = useState(false);
  const first = isFirst(changes);
  const status = useEditor((state) => state.pipeline?.status);
  const name = useEditor((state) => state.name);
  const live = useLive((state) => state.pipelines.find((each) => each.name === name)?.status);
  const operators = useEditor((state) => state.operators);
  const refused = deployRefusal(changes, agreed, (id) => nameOfId(what.document, operators, id));
  const deploy = () => answer([...agreed]);
  useEffect(() => {
    if (!ordered || anyway === null) return;
    setOrdered(false);
    if (!anyway && !refused) answer([...agreed]);
  }, [ordered, anyway, refused, agreed, answer]);
  const show = what.isDraft ? (each: DeployChange) => (answer(null), showInEditor(each)) : null;
  const agree = (element: string, yes: boolean) =>
    setAgreed(new Set(yes ? [...agreed, element] : [...agreed].filter((each) => each !== element)));
  return (
    <Dialog
      open
      size="m"
      onClose={() => answer(null)}
      title={first ? `Deploy ${what.title}?` : `Deploy changes of ${what.title}?`}
      description={
        first
          ? "You see where each element will run, and why. You can move it to another node while it runs."
          : `${nowWords(live ?? status)} You see what will happen to each element that differs from the deployed version.`
      }
      footer={
        <>
          <button type="button" className="button" onClick={() => answer(null)}>
            Cancel
          </button>
          {ordered && !refused && (
            <button type="button" className="button" onClick={deploy}>
              Deploy without waiting
            </button>
          )}
          <DialogAction
            title={ordered ? "Waits for the check…" : deployTitle(first, !!anyway)}
            refused={refused}
            busy={ordered}
            run={anyway === null ? () => setOrdered(true) : deploy}
          />
        </>
      }
    >
      <div className="deploy__expected" role="status">
        <ExpectedNote checks={expected} ordered={ordered} />
      </div>
      {first ? (
        <Places changes={changes} document={what.document} />
      ) : (
        <div className="stack">
          {grouped(changes).map(({ change, elements }) => (
            <section
              key={change}
              className={`change change--${change}`}
              aria-label={CHANGE_WORDS[change].title}
            >
              <h3 className="section-title">{CHANGE_WORDS[change].title}</h3>
              <ul className="plain-list stack stack--tight">
                {elements.map((each) => (
                  <li key={each.element}>
                    <ChangeLine each={each} document={what.document} onShow={show} />
                    {each.change === "restart" && (
                      <Agreement
                        each={each}
                        document={what.document}
                        agreed={agreed.has(each.element)}
                        onAgree={(yes) => agree(each.element, yes)}
                      />
                    )}
                  </li>
                ))}
              </ul>
              {elements.some(({ instead }) => instead) &&
                (what.isDraft ? (
                  <button
                    type="button"
                    className="button button--small"
                    onClick={() => (answer(null), void giveNewIds(elements))}
                  >
                    Give another id
                  </button>
                ) : (
                  <p className="field__help">
                    Restore this version into the draft and deploy the draft: there, one click gives another
                    id.
                  </p>
                ))}
              {sectionText(change, elements) && (
                <p className="field__help">{sectionText(change, elements)}</p>
              )}
            </section>
          ))}
          {untouched(changes) && <p className="muted small">{untouched(changes)}</p>}
        </div>
      )}
    </Dialog>
  );
}

const deployTitle = (first: boolean, anyway: boolean): string =>
  `${first ? "Deploy" : "Deploy changes"}${anyway ? " anyway" : ""}`;

function showInEditor(each: DeployChange): void {
  setMode("edit");
  if (findElement(current(), each.element)) select([each.element]);
  useEditor.setState({ focusPath: each.path });
}

/** An element's name as people know it, in what is to be deployed. */
function useName(id: string, document: PipelineDocument): string {
  return useEditor((state) => nameOfId(document, state.operators, id));
}

function ChangeLine({
  each,
  document,
  onShow,
}: {
  each: DeployChange;
  document: PipelineDocument;
  onShow: ((each: DeployChange) => void) | null;
}) {
  const named = useName(each.element, document);
  const name = each.title ?? named;
  return (
    <>
      {onShow && findElement(document, each.element) ? (
        <button type="button" className="link" onClick={() => onShow(each)}>
          {name}
        </button>
      ) : (
        <b>{name}</b>
      )}
      {each.reason && <span className="change__reason">{each.reason}</span>}
      {each.view && each.change !== "added" && (
        <span className="change__reason">only the dashboard shows it</span>
      )}
      {(each.change === "added" || each.node || each.problem) && (
        <span className="change__reason">{place(each)}</span>
      )}
      {each.change === "removed" && each.loses && (
        <p>
          <b>Lost:</b> {each.loses}.
        </p>
      )}
    </>
  );
}

/** Where a new element goes, or one that will run elsewhere. */
function place({ node, why, problem, waits, warning }: DeployChange): string {
  if (problem) return waits ? `waits for a node: ${problemWords(problem)}` : problemWords(problem);
  return node ? `goes to ${node}: ${why}${warning ? `. But ${node} ${warning}` : ""}` : (why ?? "");
}

/** What is lost when an element starts again without its state. The user agrees for each element. */
function Agreement({
  each,
  document,
  agreed,
  onAgree,
}: {
  each: DeployChange;
  document: PipelineDocument;
  agreed: boolean;
  onAgree: (yes: boolean) => void;
}) {
  const name = useName(each.element, document);
  return (
    <div className="change__agree">
      <p>
        <b>Lost:</b> {each.loses}.
      </p>
      <label className="check">
        <input type="checkbox" checked={agreed} onChange={(event) => onAgree(event.target.checked)} />
        Restart {name} without its state
      </label>
    </div>
  );
}

/** The table of a first deployment: element, node, reason. */
function Places({ changes, document }: { changes: DeployChange[]; document: PipelineDocument }) {
  const nodes = new Set(changes.flatMap((each) => each.node ?? []));
  const waits = changes.some((each) => each.problem && each.waits);
  const chosen = changes.some(({ element, node }) => node && !findElement(document, element)?.node);
  return (
    <div className="stack">
      <div className="table-wrap">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Element</th>
              <th scope="col">Goes to</th>
              <th scope="col">Why there</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((each) => (
              <Place key={each.element} each={each} document={document} />
            ))}
          </tbody>
        </table>
      </div>
      <p className="muted small">
        {nodes.size > 0 && `On ${plural(nodes.size, "node")}. `}
        {waits && "Fogline waits up to 90 s for a node that does not answer yet. "}
        {chosen &&
          "If the load changes before you deploy, Fogline may choose another node for an element for which the draft names none."}
      </p>
    </div>
  );
}

function Place({ each, document }: { each: DeployChange; document: PipelineDocument }) {
  const name = useName(each.element, document);
  return (
    <tr>
      <td>
        <b>{name}</b>
      </td>
      <td className="nowrap">
        {each.node ?? <span className="muted">{each.view ? "this dashboard" : "no node yet"}</span>}
      </td>
      <td>
        {each.problem ? (
          <span className={each.waits ? "place__waits" : "place__wrong"}>
            <TriangleAlert aria-hidden="true" />
            {problemWords(each.problem)}
          </span>
        ) : (
          <>
            {each.why}
            {each.warning && (
              <span className="place__waits">
                <TriangleAlert aria-hidden="true" />
                it {each.warning}
              </span>
            )}
          </>
        )}
      </td>
    </tr>
  );
}
