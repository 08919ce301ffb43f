/** The version that is shown, and the one that it is compared with. */
import { create } from "zustand";
import { remember } from "../../shared/address";
import { get, post } from "../../shared/api";
import type { Pipeline, PipelineVersion, VersionItem } from "../../shared/types";
import { toast, toastError } from "../../shared/ui/toast";
import { autosave } from "../autosave";
import { look, setMode, useEditor } from "../store";

export type Looked = "draft" | number;
/** What a version is compared with. */
export type Against = "before" | "draft" | "deployed";

interface Versions {
  /** null while the draft is edited and no version is shown */
  looked: Looked | null;
  against: Against;
  /** counts what was saved or restored here, after which the list is another */
  turn: number;
}

export const useVersions = create<Versions>(() => ({ looked: null, against: "before", turn: 0 }));

const path = () => `/pipelines/${encodeURIComponent(useEditor.getState().name)}`;

export function openVersions(looked: Looked = "draft"): void {
  setMode("edit");
  lookAt(looked);
}

export function lookAt(looked: Looked): void {
  const { against } = useVersions.getState();
  // a draft is not compared with itself
  useVersions.setState({ looked, against: looked === "draft" && against === "draft" ? "before" : against });
  remember({ version: String(looked) });
}

export function closeVersions(): void {
  if (useVersions.getState().looked === null) return;
  useVersions.setState({ looked: null });
  remember({ version: null });
  look(null);
}

/** The version that the address names when the page is opened. */
export function lookAtAddress(): void {
  const asked = new URL(window.location.href).searchParams.get("version");
  if (asked === "draft") openVersions("draft");
  else if (asked && /^[1-9]\d{0,8}$/.test(asked)) openVersions(Number(asked));
}

// who watches what runs, or edits, does not look at a version
useEditor.subscribe((state) => {
  if (state.mode === "live") closeVersions();
});

export const loadVersions = (signal: AbortSignal): Promise<VersionItem[]> =>
  get<VersionItem[]>(`${path()}/versions`, signal);

const documents = new Map<string, PipelineVersion>();

/** A version never changes, so it is asked for once. */
export async function loadVersion(number: number, signal?: AbortSignal): Promise<PipelineVersion> {
  const address = `${path()}/versions/${number}`;
  const known = documents.get(address);
  if (known) return known;
  const version = await get<PipelineVersion>(address, signal);
  documents.set(address, version);
  return version;
}

/** The version becomes the draft; what the draft was is kept as a version, and comes back with Ctrl Z. */
export async function restore(version: PipelineVersion): Promise<void> {
  try {
    if (!(await autosave.flush())) {
      toast({
        tone: "error",
        title: "Not restored",
        text: "The draft could not be saved first, so it was not changed.",
      });
      return;
    }
    const pipeline = await post<Pipeline>(`${path()}/versions/${version.number}/restore`);
    closeVersions();
    autosave.takeOwn(pipeline);
    useVersions.setState((state) => ({ turn: state.turn + 1 }));
    toast({
      tone: "done",
      title: `Version ${version.number} is now the draft`,
      text: "Ctrl Z brings the earlier draft back, and it is also kept as a version. The running pipeline was not changed.",
    });
  } catch (error) {
    toastError("Not restored", error);
  }
}

/** Resolves to whether there is a version of the draft now. */
export async function saveVersion(note: string): Promise<boolean> {
  try {
    if (!(await autosave.flush())) return false;
    const version = await post<PipelineVersion>(`${path()}/versions`, { note });
    useVersions.setState((state) => ({ turn: state.turn + 1 }));
    const text = note && version.note !== note ? "It was saved before, with another note." : undefined;
    toast({ tone: "done", title: `The draft is version ${version.number}`, ...(text ? { text } : {}) });
    return true;
  } catch (error) {
    toastError("Not saved", error);
    return false;
  }
}
