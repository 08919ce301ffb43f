/** What `follow` means, for readers who know the data but not the runtime. */
import type { Follow } from "./types";

interface FollowWords {
  title: string;
  text: string;
}

export const FOLLOW: Record<Follow, FollowWords> = {
  exact: {
    title: "Followed batch by batch",
    text: "Its results depend on how rows are cut into batches, so a standby repeats exactly the same batches. It moves almost without a pause, and a restoration loses and repeats nothing. While a standby catches up, the element may work a little slower.",
  },
  coalesced: {
    title: "Followed in large steps",
    text: "Its results do not depend on how rows are cut into batches, so a standby catches up quickly and costs little. It moves almost without a pause, and a restoration loses and repeats nothing.",
  },
  none: {
    title: "Cannot be followed",
    text: "It may give different results when it runs again on the same rows, so a standby cannot follow it. It moves by stop and copy, with a pause. After a restoration, the results since the checkpoint may differ.",
  },
};
