/** Before a deployment: whether elements make of their pinned rows what is expected. */
import { post, problemText } from "../../shared/api";
import type { ExpectedCheck, PipelineDocument } from "../../shared/types";
import { useLoaded, Warning } from "../../shared/ui/parts";
import { useEditor } from "../store";
import { checkWords, fewLines, isWrong, type Checks } from "./pinned-words";
import "./preview.css";

export function useExpected(document: PipelineDocument): Checks {
  const pipeline = useEditor((state) => state.name);
  const path = `/pipelines/${encodeURIComponent(pipeline)}/check-expected`;
  const { data, error } = useLoaded(path, () => post<ExpectedCheck[]>(path, { document }));
  return { checks: data, error };
}

export function ExpectedNote({ checks: { checks, error }, ordered }: { checks: Checks; ordered: boolean }) {
  if (error !== undefined)
    return (
      <Warning>The expected output for the pinned rows could not be checked: {problemText(error)}</Warning>
    );
  if (!checks)
    return (
      <p className="muted small">
        {ordered
          ? "It is deployed as soon as the output for the pinned rows is as expected. That takes some 20 s at most."
          : "Fogline checks the output for the pinned rows…"}
      </p>
    );
  if (checks.length === 0) return null;
  const wrong = checks.filter(isWrong);
  if (wrong.length === 0)
    return <p className="muted small">The output for the pinned rows is as expected.</p>;
  return (
    <Warning>
      {wrong.map((check) => (
        <div key={check.element}>
          <b>{check.title}</b>{" "}
          {check.trouble === null ? "makes other rows than expected." : `was not checked: ${check.trouble}`}
          <ul className="plain-list">
            {fewLines(checkWords(check)).map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </div>
      ))}
    </Warning>
  );
}
