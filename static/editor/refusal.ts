import { toast } from "../shared/ui/toast";
import type { Mend } from "./columns";
import { commit, current } from "./store";

/** Why a stream was not drawn, with what would make it fit as buttons. */
export function tellRefusal(reason: string, mends: Mend[]): void {
  toast({
    tone: "info",
    title: "Not connected",
    text: reason,
    actions: mends.map((mend) => ({ title: mend.title, run: () => commit(mend.apply(current())) })),
  });
}
