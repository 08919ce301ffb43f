/** The title of a wall, changed. Its address stays. */
import { useState } from "react";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";
import { titleFault } from "../shared/names";
import { WALL_TITLE_MAX } from "../shared/wall-tiles";
import { current, retitle } from "./wall-store";

export function TitleDialog({ onClose }: { onClose: () => void }) {
  const [title, setTitle] = useState(current().title);
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  const wrong = titleFault(title, WALL_TITLE_MAX);
  const save = async () => {
    if (wrong || busy) return;
    setBusy(true);
    const refused = await retitle(title.trim());
    if (!refused) return onClose();
    setFault(refused);
    setBusy(false);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="Title of the wall"
      description="The address of the wall and its links stay as they are."
      footer={<DialogAction title="Change the title" refused={wrong} run={() => void save()} />}
    >
      <Text
        label="Title"
        value={title}
        onChange={setTitle}
        onEnter={() => void save()}
        fault={wrong ?? fault}
        alert={!!fault}
        maxLength={WALL_TITLE_MAX}
        autoFocus
      />
    </Dialog>
  );
}
