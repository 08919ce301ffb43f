/** What `follow` means, for who knows the data and not the runtime. */
import type { Follow } from "./types";

interface FollowWords {
  title: string;
  text: string;
}

export const FOLLOW: Record<Follow, FollowWords> = {
  exact: {
    title: "Followed batch by batch",
    text: "Its results depend on how rows are cut into batches, so a standby repeats the very same batches. It moves almost without a pause, and a restoration loses and repeats nothing. While a standby catches up, the element may work a little slower.",
  },
  coalesced: {
    title: "Followed in large steps",
    text: "Its results do not depend on how rows are cut into batches, so a standby catches up quickly and costs little. It moves almost without a pause, and a restoration loses and repeats nothing.",
  },
  none: {
    title: "Cannot be followed",
    text: "Run twice on the same rows it may give other results, so no standby can follow it. It moves by stop and copy, with a pause, and after a restoration results since the checkpoint may differ.",
  },
};
