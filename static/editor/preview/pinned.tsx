/** Rows that are pinned to an element, and what it is expected to make of them. */
import { useState } from "react";
import { Check, Pin, PinOff } from "lucide-react";
import { del, elementPath, request } from "../../shared/api";
import type { ElementPreview, PinnedRows } from "../../shared/types";
import { Warning } from "../../shared/ui/parts";
import { toastError } from "../../shared/ui/toast";
import { current, useEditor } from "../store";
import type { Rows } from "./path";
import { differenceWords, fewLines, letterWords, pinnedWords } from "./pinned-words";

interface Props {
  element: string;
  rows: Rows;
  node: string | null;
  preview: ElementPreview;
  /** shows other rows, or the same again */
  onRows: (rows: Rows) => void;
}

export function Pinned({ element, rows, node, preview, onRows }: Props) {
  const pipeline = useEditor((state) => state.name);
  const [busy, setBusy] = useState(false);
  const { pinned } = preview;
  const path = `${elementPath(pipeline, element)}`;
  const body = { document: current(), ...(node === null ? {} : { node }) };
  const order = (title: string, run: () => Promise<unknown>, next: Rows) => {
    if (busy) return;
    setBusy(true);
    run()
      .then(
        () => onRows(next),
        (error: unknown) => toastError(title, error),
      )
      .finally(() => setBusy(false));
  };
  if (rows !== "pinned")
    return preview.inputs.length === 0 || preview.output === null ? null : (
      <div className="row row--wrap">
        <button
          type="button"
          className="button button--small"
          aria-disabled={busy}
          title="Saves the first 200 rows that come to the element with the draft. You can preview the element on these rows, and set the output that you expect"
          onClick={() =>
            order(
              "The rows were not pinned",
              () => request<PinnedRows>("PUT", `${path}/pinned-rows`, { body: { ...body, rows } }),
              "pinned",
            )
          }
        >
          <Pin aria-hidden="true" />
          {pinned ? "Pin these rows instead" : "Pin these rows"}
        </button>
      </div>
    );
  if (!pinned) return null;
  return (
    <div className="stack stack--tight">
      <p className="field__help" role="status">
        {pinnedWords(pinned, preview.letters_count)}
      </p>
      <Differences pinned={pinned} dead={preview.letters_count} />
      <div className="row row--wrap">
        <button
          type="button"
          className="button button--small"
          aria-disabled={busy}
          title="Before each deployment it is checked that the element still makes these rows"
          onClick={() =>
            order(
              "The rows are not expected",
              () => request<PinnedRows>("PUT", `${path}/expected-rows`, { body }),
              "pinned",
            )
          }
        >
          <Check aria-hidden="true" />
          {pinned.expects ? "Expect these rows instead" : "Expect these rows"}
        </button>
        <button
          type="button"
          className="button button--small"
          aria-disabled={busy}
          onClick={() => order("The rows stay pinned", () => del(`${path}/pinned-rows`), "source")}
        >
          <PinOff aria-hidden="true" />
          Unpin
        </button>
      </div>
    </div>
  );
}

function Differences({ pinned, dead }: { pinned: PinnedRows; dead: number }) {
  const letters = letterWords(pinned.letters_expected, dead);
  const lines = fewLines([
    ...pinned.differences.map(differenceWords),
    ...(letters === null ? [] : [letters]),
  ]);
  if (lines.length === 0) return null;
  return (
    <Warning>
      <ul className="plain-list">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </Warning>
  );
}
