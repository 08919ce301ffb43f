import { toast } from "../shared/ui/toast";
import type { Mend } from "./columns";
import { commit, current, setMode } from "./store";
import { closeVersions } from "./versions/store";

/**
 * The message stays until the user answers it, also when the draft is no longer shown; the draft is then
 * shown again.
 */
function apply(mend: Mend): void {
  setMode("edit");
  closeVersions();
  commit(mend.apply(current()));
}

/** Why a stream was not drawn, with what would make it fit as buttons. */
export function tellRefusal(reason: string, mends: Mend[]): void {
  toast({
    tone: "info",
    title: "Not connected",
    text: reason,
    actions: mends.map((mend) => ({ title: mend.title, run: () => apply(mend) })),
  });
}
