import { useEffect, useState } from "react";
import { post, problemText } from "../shared/api";
import { Asker } from "../shared/asker";
import type { UndeployPlan } from "../shared/types";
import { deliversFirst } from "./undelivered";

/** What an undeployment does with rows that wait for their delivery, when it is known how many there are. */
export function WaitingRows({ path }: { path: string }) {
  const [words, setWords] = useState("Counting the rows that wait for their delivery…");
  useEffect(() => {
    const asker = new Asker();
    asker.ask(
      (signal) => post<UndeployPlan>(`${path}/undeploy`, { dry_run: true }, signal),
      ({ undelivered }) => setWords(deliversFirst(undelivered)),
      (error) => setWords(`Nobody knows how many rows wait for their delivery. ${problemText(error)}`),
    );
    return () => asker.stop();
  }, [path]);
  return <span role="status">{words}</span>;
}
