import { useEffect, useState } from "react";
import * as actions from "../../shared/actions";
import { type Command, registerCommands } from "../../shared/commands";
import { useElement } from "../../shared/live";
import { nameOf } from "../../shared/status";
import type { LiveElement } from "../../shared/types";
import { useEditor } from "../store";
import { MigrateDialog } from "./migrate";
import { StandbyDialog } from "./replicas";
import { RestoreDialog } from "./restore";

type Asking = "migrate" | "restore" | "standby";

/** For the command palette: what can be done with the selected element while it runs. */
export function SelectedActions() {
  const pipeline = useEditor((state) => state.name);
  const chosen = useEditor((state) => (state.selected.size === 1 ? ([...state.selected][0] ?? null) : null));
  return <ElementCommands pipeline={pipeline} element={useElement(pipeline, chosen)} />;
}

interface Props {
  pipeline: string;
  /** undefined when none is selected */
  element: LiveElement | undefined;
}

/** For the command palette: what can be done with an element while it runs, with its dialogs. */
export function ElementCommands({ pipeline, element }: Props) {
  const [asking, setAsking] = useState<{ what: Asking; of: LiveElement } | null>(null);
  const close = () => setAsking(null);
  useEffect(
    () => registerCommands("selected", commandsOf(pipeline, element, setAsking)),
    [pipeline, element],
  );
  if (!asking) return null;
  // its present state, because a dialog may be open for long
  const props = { pipeline, element: element?.id === asking.of.id ? element : asking.of, onClose: close };
  if (asking.what === "migrate") return <MigrateDialog {...props} />;
  if (asking.what === "standby") return <StandbyDialog {...props} />;
  return <RestoreDialog {...props} checkpoint={null} />;
}

function commandsOf(
  pipeline: string,
  element: LiveElement | undefined,
  ask: (asking: { what: Asking; of: LiveElement }) => void,
): Command[] {
  const runs = element && element.status !== "draft";
  const idle = element ? "It is not deployed." : "Select one element first.";
  const command = (
    id: string,
    title: (name: string) => string,
    words: string[],
    action: keyof LiveElement["actions"],
    run: (element: LiveElement) => void,
  ): Command => ({
    id: `selected-${id}`,
    title: title(element ? nameOf(element) : "an element"),
    keywords: words,
    disabled: runs ? actions.refusal(element.actions[action]) : idle,
    run: () => element && run(element),
  });
  return [
    command(
      "migrate",
      (name) => `Migrate ${name}`,
      ["move", "handover"],
      "migrate",
      (of) => ask({ what: "migrate", of }),
    ),
    command(
      "restore",
      (name) => `Restore ${name}`,
      ["recover", "rewind", "checkpoint"],
      "restore",
      (of) => ask({ what: "restore", of }),
    ),
    element?.paused
      ? command(
          "resume",
          (name) => `Resume ${name}`,
          ["go on", "continue"],
          "resume",
          (of) => void actions.setPaused(pipeline, of, false),
        )
      : command(
          "pause",
          (name) => `Pause ${name}`,
          ["stop", "hold"],
          "pause",
          (of) => void actions.setPaused(pipeline, of, true),
        ),
    command(
      "checkpoint",
      (name) => `Take a checkpoint of ${name} now`,
      ["save"],
      "checkpoint",
      (of) => void actions.checkpointNow(pipeline, of),
    ),
    command(
      "standby",
      (name) => `Keep a standby of ${name}`,
      ["backup", "hot"],
      "keep_standby",
      (of) => ask({ what: "standby", of }),
    ),
    command(
      "drop-standby",
      (name) => `Drop the standby of ${name}`,
      [],
      "drop_standby",
      (of) => void actions.dropStandbys(pipeline, of),
    ),
  ];
}
