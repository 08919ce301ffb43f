/**
 * Saves the draft on the server automatically, and never loses it on the way.
 *
 *     saved --change--> dirty --0.7 s--> saving --ok--> saved
 *                         ^                 |--409--> conflict --choice--> dirty
 *                         |                 |--404--> deleted, or it has another name: see gone.ts
 *                         +---- retry ------+--else--> failed
 *
 * A copy lies in localStorage from the first change until the server has it.
 */
import { ApiError, problemText, request, useSession } from "../shared/api";
import { mayAct } from "../shared/page";
import { toast } from "../shared/ui/toast";
import type { Pipeline, PipelineDocument, Problem } from "../shared/types";
import { nameOfId } from "../shared/document";
import { becameOf, follow } from "./gone";
import { dropCopy, keepCopy, takeCopy } from "../shared/local-copies";
import { stable } from "./merge";
import { repinned, repinsOf, repinWords } from "./pins";
import { adopt, current, replace, rewrite, type SaveState, useEditor } from "./store";

const QUIET_MS = 700;
const RETRY_MS = 4000;

/** The fields of a 409 when somebody else has saved; a 409 for another reason has neither. */
interface Overtaken {
  theirs: PipelineDocument;
  revision: number;
}

function overtakenBy(error: unknown): Overtaken | null {
  if (!(error instanceof ApiError) || error.status !== 409) return null;
  const { theirs, revision } = error.problem as Problem & Partial<Overtaken>;
  return theirs && revision !== undefined ? { theirs, revision } : null;
}

class Autosave {
  /** the newest document that the server has: also the base of a merge */
  base: PipelineDocument | null = null;
  revision = 0;
  /** whether this browser keeps what the server does not have yet */
  private kept = false;
  private timer = 0;
  private running: Promise<boolean> | null = null;

  start(pipeline: Pipeline): void {
    this.base = pipeline.document;
    this.revision = pipeline.revision;
    let seen = current();
    useEditor.subscribe((state) => {
      if (state.history.present === seen) return;
      seen = state.history.present;
      this.changed(seen);
    });
    window.addEventListener("beforeunload", (event) => {
      if (!this.pending()) return;
      // to sign in again is no reason to ask: the next visit continues with what is kept
      if (useSession.getState().over && this.kept) return;
      event.preventDefault();
      if (this.waits()) return;
      const document = current();
      this.put(document, true)
        .then((pipeline) => this.accepted(document, pipeline)) // the user may stay
        .catch(() => undefined);
    });
    window.addEventListener(
      "online",
      () => useEditor.getState().save.state === "failed" && void this.flush(),
    );
  }

  /** Whether the user has to choose first what is saved. */
  private waits(): boolean {
    return ["conflict", "deleted"].includes(useEditor.getState().save.state);
  }

  pending(): boolean {
    return mayAct("editor") && this.base !== null && !this.isSaved(current());
  }

  private isSaved(document: PipelineDocument): boolean {
    return document === this.base || stable(document) === stable(this.base);
  }

  private changed(document: PipelineDocument): void {
    if (!mayAct("editor")) return;
    const { name } = useEditor.getState();
    if (this.base)
      this.kept = keepCopy(name, { document, base: this.base, revision: this.revision, at: Date.now() });
    if (this.waits()) return;
    useEditor.setState({ save: { state: "dirty" } });
    this.later(QUIET_MS);
  }

  private later(ms: number): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.flush(), ms);
  }

  /** Save now; true when the server has what is shown. */
  async flush(): Promise<boolean> {
    window.clearTimeout(this.timer);
    if (this.running) {
      await this.running;
      return this.flush();
    }
    if (this.waits()) return false;
    if (!this.pending()) {
      if (useEditor.getState().save.state !== "saved") this.done(Date.now());
      return true;
    }
    this.running = this.save();
    try {
      return await this.running;
    } finally {
      this.running = null;
    }
  }

  private async save(): Promise<boolean> {
    const document = current();
    useEditor.setState({ save: { state: "saving" } });
    try {
      this.accepted(document, await this.put(document, false));
    } catch (error) {
      const overtaken = overtakenBy(error);
      if (overtaken && this.follow(overtaken.theirs, overtaken.revision)) return this.save();
      if (!overtaken || stable(overtaken.theirs) !== stable(document)) {
        this.failed(error, overtaken);
        return false;
      }
      // "theirs" is what we sent ourselves once before: only the answer to that was lost
      this.base = document;
      this.revision = overtaken.revision;
    }
    if (this.pending()) {
      useEditor.setState({ save: { state: "dirty" } });
      this.later(QUIET_MS);
    } else this.done(Date.now());
    return true;
  }

  private accepted(document: PipelineDocument, pipeline: Pipeline): void {
    this.base = document;
    this.revision = pipeline.revision;
    useEditor.setState({ pipeline: { ...pipeline, document } });
  }

  private done(at: number): void {
    dropCopy(useEditor.getState().name);
    useEditor.setState({ save: { state: "saved", at } });
  }

  private failed(error: unknown, overtaken: Overtaken | null): void {
    if (overtaken) {
      useEditor.setState({ save: { state: "conflict", ...overtaken } });
      return;
    }
    useEditor.setState({ save: { state: "failed", why: problemText(error) } });
    if (error instanceof ApiError && error.status === 404) void this.missed();
    // what the server refuses outright will not get better by itself
    const hopeless = error instanceof ApiError && [400, 403, 404, 413, 422].includes(error.status);
    if (!hopeless) this.later(RETRY_MS);
  }

  /** The pipeline is not there under its name: it has another one now, or somebody deleted it. */
  async missed(): Promise<void> {
    const { name, pipeline } = useEditor.getState();
    if (!pipeline || this.waits()) return;
    const now = await becameOf(pipeline.id, name).catch(() => null);
    if (now === null)
      this.later(RETRY_MS); // nobody knows: the server cannot be reached
    else if (now === "deleted") useEditor.setState({ save: { state: "deleted" } });
    else if (now.name !== name) {
      this.base = null; // the next page saves
      follow(name, now);
    }
  }

  private put(document: PipelineDocument, keepalive: boolean): Promise<Pipeline> {
    return request<Pipeline>("PUT", `/pipelines/${encodeURIComponent(useEditor.getState().name)}`, {
      body: { document },
      headers: { "If-Match": `"${this.revision}"` },
      keepalive,
    });
  }

  /**
   * Shows a document that differs from the draft only by places that the user has not chosen: it is not
   * saved.
   */
  takeAsSaved(document: PipelineDocument, save: SaveState): void {
    window.clearTimeout(this.timer);
    this.base = document;
    dropCopy(useEditor.getState().name);
    useEditor.setState({ save });
  }

  /**
   * Continues with changes that an earlier visit could not save. If the draft has changed since, the user
   * chooses.
   */
  resume(pipeline: Pipeline): "nothing" | "saving" | "conflict" {
    if (!mayAct("editor")) return "nothing"; // it stays for a user who may save it
    const copy = takeCopy(pipeline.name);
    if (!copy) return "nothing";
    if (stable(copy.document) === stable(pipeline.document)) {
      dropCopy(pipeline.name);
      return "nothing";
    }
    const repins = repinsOf(copy.base, pipeline.document);
    // a new name gives it another revision, and the copy was renamed with it
    const same = stable(copy.base) === stable(pipeline.document);
    const overtaken = copy.revision !== pipeline.revision && !repins && !same;
    if (overtaken) {
      // before anything else: a merge starts from what the copy was begun from
      this.base = copy.base;
      this.revision = copy.revision;
      const { document: theirs, revision } = pipeline;
      useEditor.setState({ save: { state: "conflict", theirs, revision } });
    }
    adopt(repins ? repinned(copy.document, repins) : copy.document);
    if (overtaken) return "conflict";
    void this.flush();
    return "saving";
  }

  /** Whether somebody else has saved while we have no unsaved changes, so that their draft can be shown. */
  isBehind(revision: number): boolean {
    return this.base !== null && revision > this.revision && !this.running && !this.pending();
  }

  /**
   * Continues from a draft in which only pins have changed, after a move; returns false for any other
   * change.
   */
  private follow(theirs: PipelineDocument, revision: number): boolean {
    const repins = this.base && repinsOf(this.base, theirs);
    if (!this.base || !repins) return false;
    this.base = repinned(this.base, repins); // with the places that were made up for what has none
    this.revision = revision;
    rewrite((document) => repinned(document, repins));
    const { mode, operators } = useEditor.getState();
    // who watches what runs sees the move itself
    if (mode === "edit")
      toast({
        tone: "info",
        title: repinWords(repins, (id) => nameOfId(current(), operators, id)),
        text: "Your own changes and your undo steps are still there.",
      });
    return true;
  }

  /** Shows what somebody else has saved; returns false if it is shown already or needs no message. */
  takeTheirs(pipeline: Pipeline): boolean {
    if (this.base && this.follow(pipeline.document, pipeline.revision)) {
      this.accepted(this.base, pipeline);
      this.done(Date.now());
      return false;
    }
    const changed = !this.isSaved(pipeline.document);
    this.accepted(pipeline.document, pipeline);
    if (changed) {
      replace(pipeline.document);
      this.done(Date.now());
    }
    return changed;
  }

  /** Show what the server has made of the draft for this user; a step that can be undone. */
  takeOwn(pipeline: Pipeline): void {
    this.accepted(pipeline.document, pipeline);
    adopt(pipeline.document);
  }

  /** After a conflict: go on from their revision with the document that is shown now. */
  resolve(theirs: PipelineDocument, revision: number): void {
    this.base = theirs;
    this.revision = revision;
    useEditor.setState({ save: { state: "dirty" } });
    void this.flush();
  }
}

export const autosave = new Autosave();
