import { useId, useMemo, useState } from "react";
import { post, problemText } from "../shared/api";
import { plural } from "../shared/format";
import { useLive } from "../shared/live";
import type { Operator, PipelineDocument, PipelineVersion } from "../shared/types";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { toast } from "../shared/ui/toast";
import { autosave } from "./autosave";
import { findElement, groupName } from "../shared/document";
import { counted, difference, elementChanges, fieldsByKey, groupWords, namesIn, said } from "./difference";
import { mergeDocuments, stable, type Conflict, type Side } from "./merge";
import { adopt, current, select, useEditor } from "./store";
import { closeVersions } from "./versions/store";
import "../shared/ui/choices.css";
import "./conflict.css";

/** Someone else has saved this draft: the user chooses where both changed the same, and loses nothing. */
export function ConflictDialog() {
  const save = useEditor((state) => state.save);
  if (save.state !== "conflict") return null;
  return <Choice key={save.revision} theirs={save.theirs} revision={save.revision} />;
}

interface ChoiceProps {
  theirs: PipelineDocument;
  revision: number;
}

/** The merge by the choices so far, and how to save it. */
function useMerge({ theirs, revision }: ChoiceProps, by: string) {
  const yours = useEditor((state) => state.history.present);
  const name = useEditor((state) => state.name);
  const [choices, setChoices] = useState<Readonly<Record<string, Side>>>({});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const base = autosave.base ?? yours;
  const merge = useMemo(() => mergeDocuments(base, yours, theirs, choices), [base, yours, theirs, choices]);
  const finish = async () => {
    setBusy(true);
    setError("");
    try {
      const kept = Object.values(choices).includes("mine") ? await keepTheirs(name, by) : null;
      closeVersions(); // nothing can be changed while one is looked at
      const next = new Map(merge.renamed);
      const selected = [...useEditor.getState().selected].map((id) => next.get(id) ?? id);
      if (stable(merge.document) !== stable(current())) adopt(merge.document);
      select(selected.filter((id) => findElement(merge.document, id)));
      autosave.resolve(theirs, revision);
      const where = kept ? ` The draft of ${by} is kept as version ${kept.number}.` : "";
      toast({
        tone: "done",
        title: "Both drafts are merged",
        text: `Ctrl Z brings back your own draft.${where}`,
      });
    } catch (problem) {
      setError(`Their draft could not be kept as a version, so nothing was changed. ${problemText(problem)}`);
    } finally {
      setBusy(false);
    }
  };
  return { base, yours, merge, choices, setChoices, busy, error, finish };
}

function Choice(props: ChoiceProps) {
  const name = useEditor((state) => state.name);
  const operators = useEditor((state) => state.operators);
  const by = useLive((state) => state.pipelines.find((each) => each.name === name)?.updated_by) ?? null;
  const { base, yours, merge, choices, setChoices, busy, error, finish } = useMerge(
    props,
    by ?? "someone else",
  );
  const { theirs } = props;
  const { conflicts, document } = merge;
  const nameOf = useMemo(
    // elements that both added get the name that they will have
    () => namesIn(operators, document, yours, theirs, base),
    [operators, document, yours, theirs, base],
  );
  const open = conflicts.filter(({ key }) => !choices[key]);
  const all = (side: Side) => setChoices(Object.fromEntries(conflicts.map(({ key }) => [key, side])));
  return (
    <Dialog
      open
      onClose={() => undefined}
      size="l"
      mustChoose
      title={`${by ?? "Someone else"} changed this draft, too`}
      description={aboutMerging(conflicts.length)}
      footer={
        <DialogAction
          title={conflicts.length ? "Save the merged draft" : "Merge both"}
          refused={
            open.length
              ? `You still have to choose: ${open.map((each) => titleOf(each, nameOf)).join(", ")}.`
              : null
          }
          busy={busy}
          run={() => void finish()}
        />
      }
    >
      <div className="stack">
        {conflicts.length > 1 && (
          <div className="row">
            <button type="button" className="button button--small" onClick={() => all("mine")}>
              All mine
            </button>
            <button type="button" className="button button--small" onClick={() => all("theirs")}>
              All theirs
            </button>
          </div>
        )}
        {conflicts.map((conflict) => (
          <Sides
            key={conflict.key}
            title={titleOf(conflict, nameOf)}
            conflict={conflict}
            by={by}
            operators={operators}
            nameOf={nameOf}
            chosen={choices[conflict.key] ?? null}
            onChoose={(side) => setChoices({ ...choices, [conflict.key]: side })}
          />
        ))}
        {merge.renamed.map(([id, next]) => (
          <p key={id} className="muted small">
            You both added an element: {nameOf(id)} is theirs, {nameOf(next)} is yours. Both stay.
          </p>
        ))}
        <Merged base={base} yours={yours} theirs={theirs} operators={operators} />
        {error && <p className="field__error">{error}</p>}
      </div>
    </Dialog>
  );
}

function aboutMerging(conflicts: number): string {
  const what = conflicts
    ? `You both changed ${plural(conflicts, "thing")} in different ways: choose which change to keep. Everything else is merged.`
    : "Your changes do not contradict each other, so both can be merged.";
  return `${what} Nothing is lost: Ctrl Z brings back your own draft, and what you do not take of the other draft is kept as a version.`;
}

/** The server's draft becomes a version before ours replaces it. */
function keepTheirs(name: string, by: string): Promise<PipelineVersion> {
  const note = `the draft of ${by} before the merge`;
  return post<PipelineVersion>(`/pipelines/${encodeURIComponent(name)}/versions`, { note });
}

function titleOf(conflict: Conflict, nameOf: (id: string) => string): string {
  if (conflict.kind === "element") return nameOf(conflict.id);
  if (conflict.kind === "metadata") return "The pipeline's name and description";
  if (conflict.kind === "groups") return "What runs as one";
  const group = conflict.mine ?? conflict.theirs ?? conflict.was;
  return `What runs as one: ${group ? groupName(group, nameOf) : conflict.id}`;
}

interface SidesProps {
  title: string;
  conflict: Conflict;
  by: string | null;
  operators: ReadonlyMap<string, Operator>;
  nameOf: (id: string) => string;
  chosen: Side | null;
  onChoose: (side: Side) => void;
}

/** Both values side by side; each side is one radio button. */
function Sides({ title, conflict, by, operators, nameOf, chosen, onChoose }: SidesProps) {
  const id = useId();
  return (
    <fieldset className="sides">
      <legend className="sides__title">{title}</legend>
      {(["mine", "theirs"] as const).map((side) => (
        <label key={side} className={`choice side${chosen === side ? " choice--chosen" : ""}`}>
          <span className="row">
            <input
              type="radio"
              name={id}
              checked={chosen === side}
              aria-labelledby={`${id}-${side}`}
              aria-describedby={`${id}-${side}-values`}
              onChange={() => onChoose(side)}
            />
            <b id={`${id}-${side}`}>{side === "mine" ? "Mine" : "Theirs"}</b>
            {side === "theirs" && by && <span className="muted small">{by}</span>}
          </span>
          <dl id={`${id}-${side}-values`} className="side__values">
            {valuesOf(conflict, side, operators, nameOf).map(([what, value]) => (
              <div key={what}>
                <dt>{what}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </label>
      ))}
    </fieldset>
  );
}

const GONE = "nothing";

/** The values of one side: [field, value in words]. */
function valuesOf(
  conflict: Conflict,
  side: Side,
  operators: ReadonlyMap<string, Operator>,
  nameOf: (id: string) => string,
): [string, string][] {
  if (conflict.kind === "metadata")
    return [
      ["Name", String(conflict[side]?.title || conflict[side]?.name || GONE)],
      ["Description", String(conflict[side]?.description || GONE)],
    ];
  if (conflict.kind === "group")
    return [["Elements", groupWords(conflict[side], nameOf) ?? "run separately"]];
  if (conflict.kind === "groups") {
    const groups = (conflict[side] ?? []).map((group) => groupWords(group, nameOf));
    return [["Groups", groups.join("; ") || "none"]];
  }
  const { was, fields } = conflict;
  const element = conflict[side];
  if (!element) return [["The element", "removed"]];
  const operator = operators.get(element.type);
  if (fields.length) {
    const values = fieldsByKey(element);
    return fields.map((key) => {
      const { what, value } = said(key, values.get(key), operator, nameOf);
      return [what, value ?? GONE];
    });
  }
  // kept by one and removed by the other
  const changes = was ? elementChanges(was, element, operators, nameOf) : [];
  return [
    ["The element", "kept, with changes"],
    ...changes.map(({ what, to }): [string, string] => [what, to ?? GONE]),
  ];
}

/** The changes that are merged without a question. */
function Merged({
  base,
  yours,
  theirs,
  operators,
}: {
  base: PipelineDocument;
  yours: PipelineDocument;
  theirs: PipelineDocument;
  operators: ReadonlyMap<string, Operator>;
}) {
  const lines = [
    ["All your changes:", counted(difference(base, yours, operators))],
    ["Theirs:", counted(difference(base, theirs, operators))],
  ];
  return (
    <p className="muted small">
      {lines.map(([who, what]) => `${who} ${what || "only moved things"}.`).join(" ")}
    </p>
  );
}
