/** What a person decides before an import: questions, how the file is read, and its first lines. */
import { useEffect, useState } from "react";
import { Tabs } from "../ui/tabs";
import { Problem, Skeleton } from "../ui/parts";
import { Choices } from "../ui/choices";
import { ColumnBar } from "./column-bar";
import { fixTable } from "./fix";
import { LineBar } from "./line-bar";
import { Options } from "./options";
import { LinesPane } from "./lines-pane";
import { Notes } from "./notes";
import { RowsPane } from "./rows-pane";
import { useTogether } from "./together";
import { Trouble } from "./trouble";
import type { FileDetail, Source } from "./types";
import type { Decision } from "./use-decision";
import { placeOf } from "./words";

export function Decide({ file, decision }: { file: FileDetail; decision: Decision }) {
  const { detection, error, retry, preview } = decision;
  const [column, setColumn] = useState<Source | null>(null);
  const [line, setLine] = useState<number | null>(null);
  const together = useTogether();
  return (
    <div className="import">
      {file.state === "failed" && <Trouble file={file} />}
      {file.state === "cancelled" && (
        <p className="muted">The last import was cancelled. Nothing was imported.</p>
      )}
      <Questions decision={decision} />
      <Options decision={decision} />
      <Notes size={file.size} notes={detection.notes} />
      {Boolean(error) && <Problem error={error} onRetry={retry} />}
      {!preview && !error && <Skeleton lines={8} />}
      {preview && (
        <Panes
          busy={decision.busy}
          left={
            <>
              <LineBar decision={decision} line={line} />
              <LinesPane
                preview={preview}
                decision={decision}
                chosen={line}
                onChoose={setLine}
                {...together}
              />
            </>
          }
          right={
            <>
              <ColumnBar decision={decision} column={column} onChoose={setColumn} />
              <RowsPane preview={preview} chosen={column} onChoose={setColumn} {...together} />
            </>
          }
        />
      )}
    </div>
  );
}

function Questions({ decision }: { decision: Decision }) {
  const { detection, changes, change } = decision;
  if (detection.questions.length === 0) return null;
  return (
    <section className="questions" aria-label="Questions">
      {detection.questions.map((question) => {
        const answer = changes.answers[question.id];
        return (
          <div key={question.id} className={`question${answer === undefined ? " question--open" : ""}`}>
            <Choices
              legend={[question.text, placeOf(question) && `(${placeOf(question)})`]
                .filter(Boolean)
                .join(" ")}
              value={answer === undefined ? null : String(answer)}
              choices={question.choices.map(({ title, example }, at) => ({
                value: String(at),
                title,
                note: example && !title.includes(example) && <span className="mono">{example}</span>,
              }))}
              onChange={(at) => {
                const answered = { ...changes, answers: { ...changes.answers, [question.id]: Number(at) } };
                change(fixTable(answered, question.choices[Number(at)]?.changes ?? {}));
              }}
            />
          </div>
        );
      })}
    </section>
  );
}

const NARROW = "(max-width: 900px)";

/** Side by side, or on a narrow screen one at a time. */
function Panes({ left, right, busy }: { left: React.ReactNode; right: React.ReactNode; busy: boolean }) {
  const narrow = useNarrow();
  const [tab, setTab] = useState("read");
  if (narrow)
    return (
      <div className="panes panes--narrow" aria-busy={busy}>
        <Tabs
          label="The file"
          value={tab}
          onChange={setTab}
          tabs={[
            { id: "lies", title: "As it lies", content: left },
            { id: "read", title: "As it is read", content: right },
          ]}
        />
      </div>
    );
  return (
    <div className="panes" aria-busy={busy}>
      <section className="pane" aria-label="As it is in the file">
        {left}
      </section>
      <section className="pane" aria-label="As it is read">
        {right}
      </section>
    </div>
  );
}

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => window.matchMedia(NARROW).matches);
  useEffect(() => {
    const asked = window.matchMedia(NARROW);
    const take = () => setNarrow(asked.matches);
    asked.addEventListener("change", take);
    return () => asked.removeEventListener("change", take);
  }, []);
  return narrow;
}
