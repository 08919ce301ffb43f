/**
 * The draft goes to the server by itself, and is never lost on the way.
 *
 *     saved --change--> dirty --0.7 s--> saving --ok--> saved
 *                         ^                 |--409--> conflict --choice--> dirty
 *                         +---- retry ------+--else--> failed
 *
 * A copy lies in localStorage from the first change until the server has it.
 */
import { ApiError, problemText, request } from "../shared/api";
import { mayAct } from "../shared/page";
import type { Pipeline, PipelineDocument, Problem } from "../shared/types";
import { stable } from "./merge";
import { current, type SaveState, useEditor } from "./store";

const QUIET_MS = 700;
const RETRY_MS = 4000;

interface LocalCopy {
  document: PipelineDocument;
  revision: number;
  at: number;
}

/** What a 409 has when somebody else saved meanwhile; one for another reason has neither. */
interface Overtaken {
  theirs: PipelineDocument;
  revision: number;
}

const storageKey = (name: string) => `fogline-draft:${name}`;

export function localCopy(name: string): LocalCopy | null {
  const text = localStorage.getItem(storageKey(name));
  return text ? (JSON.parse(text) as LocalCopy) : null;
}

export function dropLocalCopy(name: string): void {
  localStorage.removeItem(storageKey(name));
}

class Autosave {
  /** the newest document that the server has: also the base of a merge */
  base: PipelineDocument | null = null;
  revision = 0;
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
      if (this.pending()) {
        void this.put(current(), true).catch(() => undefined);
        event.preventDefault();
      }
    });
    window.addEventListener(
      "online",
      () => useEditor.getState().save.state === "failed" && void this.flush(),
    );
  }

  pending(): boolean {
    return mayAct("editor") && this.base !== null && !this.isSaved(current());
  }

  private isSaved(document: PipelineDocument): boolean {
    return document === this.base || stable(document) === stable(this.base);
  }

  private changed(document: PipelineDocument): void {
    if (!mayAct("editor")) return;
    const { save, name } = useEditor.getState();
    this.keepCopy(name, document);
    if (save.state === "conflict") return; // the choice decides what is saved
    useEditor.setState({ save: { state: "dirty" } });
    this.later(QUIET_MS);
  }

  private keepCopy(name: string, document: PipelineDocument): void {
    try {
      localStorage.setItem(
        storageKey(name),
        JSON.stringify({ document, revision: this.revision, at: Date.now() }),
      );
    } catch {
      // a full or forbidden storage: the server's copy is still made
    }
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
    if (useEditor.getState().save.state === "conflict") return false;
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
      const pipeline = await this.put(document, false);
      this.base = document;
      this.revision = pipeline.revision;
      useEditor.setState({ pipeline: { ...pipeline, document } });
      if (this.pending()) {
        useEditor.setState({ save: { state: "dirty" } });
        this.later(QUIET_MS);
      } else this.done(Date.now());
      return true;
    } catch (error) {
      this.failed(error);
      return false;
    }
  }

  private done(at: number): void {
    dropLocalCopy(useEditor.getState().name);
    useEditor.setState({ save: { state: "saved", at } });
  }

  private failed(error: unknown): void {
    if (error instanceof ApiError && error.status === 409) {
      const { theirs, revision } = error.problem as Problem & Partial<Overtaken>;
      if (theirs && revision !== undefined) {
        useEditor.setState({ save: { state: "conflict", theirs, revision } });
        return;
      }
    }
    useEditor.setState({ save: { state: "failed", why: problemText(error) } });
    // what the server refuses outright will not get better by itself
    const hopeless = error instanceof ApiError && [400, 403, 404, 413, 422].includes(error.status);
    if (!hopeless) this.later(RETRY_MS);
  }

  private put(document: PipelineDocument, keepalive: boolean): Promise<Pipeline> {
    return request<Pipeline>("PUT", `/pipelines/${encodeURIComponent(useEditor.getState().name)}`, {
      body: { document },
      headers: { "If-Match": `"${this.revision}"` },
      keepalive,
    });
  }

  /** What is shown differs from the draft by nothing that the user has chosen: it is not saved. */
  takeAsSaved(document: PipelineDocument, save: SaveState): void {
    window.clearTimeout(this.timer);
    this.base = document;
    dropLocalCopy(useEditor.getState().name);
    useEditor.setState({ save });
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
