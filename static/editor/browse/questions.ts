/** The questions of one dialog to a node, one after the other: a node tries two connections at once. */
import { problemText } from "../../shared/api";
import { Asker } from "../../shared/asker";
import type { ConnectionTested } from "../../shared/types";
import { branchOf, type Branch } from "./found";

export interface Question {
  path?: string;
  find?: string;
}

type Send = (question: Question, signal: AbortSignal) => Promise<ConnectionTested>;
type Take = (branch: Branch) => void;

const ASKING: Branch = { state: "asking", words: "", things: [] };
const refused = (error: unknown): Branch => ({ state: "refused", words: problemText(error), things: [] });

export class Questions {
  private last: Promise<unknown> = Promise.resolve();
  private readonly ended = new AbortController();
  private readonly searches = new Asker();

  constructor(private readonly send: Send) {}

  look(path: string, within: readonly string[], take: Take): void {
    const { signal } = this.ended;
    const tell = (branch: Branch) => {
      if (!signal.aborted) take(branch);
    };
    take(ASKING);
    this.inTurn({ path }, signal).then(
      (answer) => tell(branchOf(answer, within)),
      (error: unknown) => tell(refused(error)),
    );
  }

  /** Nobody waits for an earlier search: it is not asked any more, and its answer is passed over. */
  search(find: string, take: Take): void {
    take(ASKING);
    this.searches.ask(
      (signal) => this.inTurn({ find }, signal),
      (answer) => take(branchOf(answer, [])),
      (error) => take(refused(error)),
    );
  }

  endSearch(): void {
    this.searches.stop();
  }

  end(): void {
    this.ended.abort();
    this.searches.stop();
  }

  /** A question that was sent is not broken off for another one: the node would look on. */
  private inTurn(question: Question, signal: AbortSignal): Promise<ConnectionTested> {
    const turn = this.last.then(() => {
      signal.throwIfAborted();
      return this.send(question, this.ended.signal);
    });
    this.last = turn.catch(() => undefined);
    return turn;
  }
}
