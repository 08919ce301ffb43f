/** What runs elsewhere than where it belongs, why, and the way home. */
import { useState } from "react";
import { bringAllBack, nodeRefusal, refusal } from "../shared/actions";
import { nameOfId } from "../shared/document";
import { listed } from "../shared/format";
import { useElements, useLive } from "../shared/live";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { Ago } from "../shared/ui/parts";
import { toast, toastError } from "../shared/ui/toast";
import { elsewhereMark, homeWords, waysHome, type Elsewhere, type WayHome } from "./pins";
import { useEditor } from "./store";

/** "3 run elsewhere", a button that opens what, why and the way home. */
export function ElsewhereMark({ elsewhere }: { elsewhere: readonly Elsewhere[] }) {
  const [open, setOpen] = useState(false);
  const nameOf = useNames();
  return (
    <>
      <button type="button" className="badge badge--warning badge--button" onClick={() => setOpen(true)}>
        {elsewhereMark(elsewhere, nameOf)}
      </button>
      {open && <WayHomeDialog elsewhere={elsewhere} nameOf={nameOf} onClose={() => setOpen(false)} />}
    </>
  );
}

function useNames(): (id: string) => string {
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  return (id) => nameOfId(document, operators, id);
}

interface DialogProps {
  elsewhere: readonly Elsewhere[];
  nameOf: (id: string) => string;
  onClose: () => void;
}

function WayHomeDialog({ elsewhere, nameOf, onClose }: DialogProps) {
  const pipeline = useEditor((state) => state.name);
  const ways = useWays(pipeline, elsewhere);
  const [busy, setBusy] = useState(false);
  const possible = ways.filter(({ refused }) => refused === null);
  const count = possible.flatMap(({ together }) => together).length;
  const bring = async () => {
    setBusy(true);
    await bringBack(pipeline, nameOf);
    onClose();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={elsewhereMark(elsewhere, nameOf)}
      description="Bringing back moves elements live. Nothing is lost or repeated, and output pauses for a moment. Deploying changes moves nothing that runs."
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            {elsewhere.length > 1 ? "Leave them there" : "Leave it there"}
          </button>
          <DialogAction
            title={count > 1 ? `Bring all ${count} back` : "Bring it back"}
            refused={count === 0 ? (ways[0]?.refused ?? "Nothing runs elsewhere any more.") : null}
            busy={busy}
            run={() => void bring()}
          />
        </>
      }
    >
      <ul className="plain-list stack">
        {ways.map(({ element, together, refused }) => (
          <Line key={element} together={together} refused={refused} nameOf={nameOf} />
        ))}
      </ul>
    </Dialog>
  );
}

function Line({
  together,
  refused,
  nameOf,
}: {
  together: Elsewhere[];
  refused: string | null;
  nameOf: (id: string) => string;
}) {
  const [first] = together;
  if (!first) return null;
  return (
    <li className="stack stack--tight">
      <span>
        <b>{listed(together.map(({ element }) => nameOf(element)))}</b> on {first.node}
      </span>
      <span className="muted small">
        Because {first.why}
        {first.at && (
          <>
            {" "}
            <Ago at={first.at} />
          </>
        )}
        . {homeWords(first, together.length)}.
      </span>
      {refused && <span className="small">{refused}</span>}
    </li>
  );
}

/** The ways home, each with the reason why it is not possible now. */
function useWays(pipeline: string, elsewhere: readonly Elsewhere[]): WayHome[] {
  const elements = useElements(pipeline);
  const nodes = useLive((state) => state.nodes);
  const of = (id: string) => elements.find((element) => element.id === id);
  return waysHome(
    elsewhere,
    (id) => of(id)?.group ?? id,
    (id, home) => {
      const element = of(id);
      if (!element) return "It does not run.";
      const node = nodes.find(({ name }) => name === home);
      return (
        refusal(element.actions.migrate) ??
        (node ? nodeRefusal(node, element.node) : `${home} is no longer registered.`)
      );
    },
  );
}

async function bringBack(pipeline: string, nameOf: (id: string) => string): Promise<void> {
  try {
    const { elements, refused } = await bringAllBack(pipeline);
    if (elements.length > 0) toast({ tone: "info", title: `Bringing ${listed(elements.map(nameOf))} back` });
    if (refused.length > 0)
      toast({
        tone: "error",
        title: "Not brought back",
        text: refused.map(({ element, reason }) => `${nameOf(element)}: ${reason}`).join(" "),
      });
  } catch (problem) {
    toastError("Not brought back", problem);
  }
}
