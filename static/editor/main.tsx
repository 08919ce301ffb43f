import { useEffect, useRef, useState } from "react";
import { ReactFlowProvider, useReactFlow } from "@xyflow/react";
import { FilePlus2, Upload } from "lucide-react";
import { remember } from "../shared/address";
import { get } from "../shared/api";
import { Asker } from "../shared/asker";
import { ImportHost } from "../shared/files/import-dialog";
import { offered } from "../shared/files/pipeline";
import { useFiles } from "../shared/files/use-files";
import { live, useLive } from "../shared/live";
import { mount } from "../shared/mount";
import { mayAct, page } from "../shared/page";
import { isDeployed } from "../shared/status";
import type { Operator, Pipeline, PipelineItem, PipelineVersion, StreamSchemas } from "../shared/types";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { toast } from "../shared/ui/toast";
import { useAddByKey } from "./adding";
import { autosave } from "./autosave";
import { Canvas } from "./canvas";
import { ConflictDialog } from "./conflict";
import { DeployPanel, followFromAddress } from "./deploy";
import { DeployPreview } from "./deploy-preview";
import { elementsOf, findElement, placeOf } from "../shared/document";
import { WAS } from "./gone";
import { GoneDialog } from "./gone-dialog";
import { Header, useHeaderCommands } from "./header";
import { Inspector } from "./inspector/inspector";
import { autoLayout, goToInspector, useEditorCommands, useKeyboard } from "./keyboard";
import { KeyboardMap } from "./keyboard-map";
import { SelectedActions } from "./live/commands";
import { LivePanel } from "./live/drawer";
import { MissingFiles } from "../shared/files/missing-files";
import { NameDialog } from "./name-dialog";
import { NearSourcesDialog } from "./near-sources-dialog";
import { ColumnsPanel } from "./outline/panel";
import { Palette } from "./palette";
import { Problems } from "./problems";
import { current, open, select, showDeployed, shown, useEditor } from "./store";
import { StateDialog } from "./state-dialog";
import { TemplateDialog } from "./template-dialog";
import { startKeeping, takeHistory } from "./undo-copies";
import { addForFile, addForStored } from "./uploading";
import { startValidation, useFileStates } from "./validation";
import { VersionBanner, VersionDetails, VersionList } from "./versions/panel";
import { lookAtAddress, useVersions } from "./versions/store";
import { reveal, showReadably } from "./view";
import "./editor.css";
import "./cards.css";
import "./streams.css";
import "./quick-add.css";
import "./panels.css";
import "./narrow.css";

/** The running version. */
function versionOf(pipeline: PipelineItem, signal?: AbortSignal): Promise<PipelineVersion> {
  const { name, deployed_version } = pipeline;
  return get<PipelineVersion>(`/pipelines/${encodeURIComponent(name)}/versions/${deployed_version}`, signal);
}

/** How soon the running version is requested again after a failure. */
const RETRY_MS = 3000;

async function load(name: string): Promise<void> {
  const [pipeline, operators] = await Promise.all([
    get<Pipeline>(`/pipelines/${encodeURIComponent(name)}`),
    get<Operator[]>("/operators"),
  ]);
  // without it the draft is shown until it is there
  const runs = pipeline.differs ? await versionOf(pipeline).catch(() => null) : null;
  useEditor.setState({ mode: page.mode ?? "edit" });
  open(pipeline, operators);
  showDeployed(runs?.document ?? null);
  const chosen = new URL(window.location.href).searchParams.get("element");
  if (chosen && findElement(shown(useEditor.getState()), chosen)) select([chosen]);
  tellNewId(pipeline);
  autosave.start(pipeline);
  if (autosave.resume(pipeline) === "saving")
    toast({
      tone: "info",
      title: "Your unsaved changes are back",
      text: "They were kept in this browser and are now saved.",
    });
  // after what an earlier visit could not save, for that is what the steps led to
  const kept = takeHistory(name, current());
  if (kept) useEditor.setState({ history: kept });
  startKeeping();
  startValidation();
  live.watchPipeline(name);
  lookAtAddress();
  void followFromAddress();
}

/** Somebody else changed the pipeline's id while it was open here. */
function tellNewId({ name }: Pipeline): void {
  const before = new URL(window.location.href).searchParams.get(WAS);
  if (!before) return;
  remember({ [WAS]: null });
  toast({
    tone: "info",
    title: `${before} has another id now: ${name}`,
    text: "You continue here, with all your changes and undo steps.",
  });
}

function EditorPage() {
  const name = page.pipeline ?? "";
  const [state, setState] = useState<"loading" | "ready">("loading");
  const [error, setError] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let over = false;
    setError(null);
    load(name)
      .then(() => !over && setState("ready"))
      .catch((problem: unknown) => !over && setError(problem));
    return () => {
      over = true;
    };
  }, [name, turn]);
  if (error) {
    return (
      <div className="page__body">
        <Problem error={error} onRetry={() => setTurn(turn + 1)} />
        <a href="/pipelines/">All pipelines</a>
      </div>
    );
  }
  if (state === "loading") return <Loading name={name} />;
  return (
    <ReactFlowProvider>
      <Workspace />
    </ReactFlowProvider>
  );
}

function Loading({ name }: { name: string }) {
  return (
    <div className="editor">
      <header className="page__head">
        <nav className="crumbs" aria-label="Breadcrumb">
          <a href="/pipelines/">Pipelines</a>
          <span aria-hidden="true">/</span>
          <h1 aria-current="page">{name}</h1>
        </nav>
      </header>
      <div className="workspace">
        <div className="panel panel--palette">
          <div className="inspector__body">
            <Skeleton lines={8} height={36} />
          </div>
        </div>
        <div className="canvas" />
        <div className="panel panel--inspector">
          <div className="inspector__body">
            <Skeleton lines={6} />
          </div>
        </div>
      </div>
    </div>
  );
}

/** While there are no unsaved changes, the canvas shows what somebody else has saved. */
function useTheirs(): void {
  const name = useEditor((state) => state.name);
  const saved = useEditor((state) => state.save.state === "saved");
  const pushed = useLive((state) => state.pipelines.find((pipeline) => pipeline.name === name)?.revision);
  useEffect(() => {
    if (pushed === undefined || !saved || !autosave.isBehind(pushed)) return;
    const asker = new Asker();
    asker.again(
      (signal) => get<Pipeline>(`/pipelines/${encodeURIComponent(name)}`, signal),
      (pipeline) => {
        if (!autosave.isBehind(pipeline.revision) || !autosave.takeTheirs(pipeline)) return;
        toast({
          tone: "info",
          title: `${pipeline.updated_by ?? "Somebody"} changed this draft`,
          text: "The canvas shows the new draft. Undo starts again from here.",
        });
      },
      () => undefined, // a change of ours would be refused as a conflict, and lose nothing
    );
    return () => asker.stop();
  }, [name, pushed, saved]);
}

/** Notices that the pipeline was deleted or got another id, also when there is nothing to save. */
function useGone(): void {
  const id = useEditor((state) => state.pipeline?.id);
  const name = useEditor((state) => state.name);
  const [seen, setSeen] = useState(false);
  const there = useLive((state) =>
    state.loaded ? state.pipelines.some((each) => each.id === id && each.name === name) : null,
  );
  useEffect(() => {
    if (there) setSeen(true);
    else if (there === false && seen) void autosave.missed();
  }, [there, seen]);
}

/** The running version for users who watch it, while the draft differs. */
function useWhatRuns(): void {
  const name = useEditor((state) => state.name);
  const loaded = useEditor((state) => state.pipeline);
  const pushed = useLive((state) => state.pipelines.find((pipeline) => pipeline.name === name));
  const known = useEditor((state) => state.deployed !== null);
  const pipeline = pushed ?? loaded;
  const version = pipeline?.differs ? pipeline.deployed_version : null;
  const { data } = useLoaded(
    `version ${name} ${version}`,
    (signal) => (pipeline && version !== null ? versionOf(pipeline, signal) : Promise.resolve(null)),
    version !== null && !known ? RETRY_MS : undefined,
  );
  useEffect(() => {
    if (version === null) showDeployed(null);
    else if (data) showDeployed(data.document);
  }, [version, data]);
}

/** The columns of what runs, as soon as somebody watches it. */
function useRunningColumns(): void {
  const name = useEditor((state) => state.name);
  const live = useEditor((state) => state.mode === "live");
  const runs = useLive((state) => state.pipelines.find((pipeline) => pipeline.name === name));
  const version = live && isDeployed(runs) ? `${runs?.deployment} ${runs?.deployed_version}` : null;
  const known = useEditor((state) => state.running !== null);
  const { data } = useLoaded(
    `columns ${name} ${version}`,
    (signal) =>
      version === null
        ? Promise.resolve(null)
        : get<StreamSchemas>(`/pipelines/${encodeURIComponent(name)}/streams`, signal),
    version !== null && !known ? RETRY_MS : undefined,
  );
  useEffect(() => useEditor.setState({ running: data?.schemas ?? null }), [data]);
}

function Workspace() {
  const mode = useEditor((state) => state.mode);
  const versions = useVersions((state) => state.looked !== null);
  const columns = useEditor((state) => state.columnsOpen);
  const selected = useEditor((state) => state.selected);
  const empty = useEditor((state) => elementsOf(shown(state)).length === 0);
  const flow = useReactFlow();
  const commands = useHeaderCommands();
  const add = useAddByKey();
  useTheirs();
  useGone();
  useWhatRuns();
  useRunningColumns();
  useFileStates();
  useKeyboard(flow);
  useEditorCommands(flow, commands, add);
  useEffect(() => {
    const [id] = selected;
    remember({ element: selected.size === 1 && id ? id : null });
    if (selected.size === 1 && id) window.setTimeout(() => reveal(flow, [id]), 30);
  }, [selected, flow]);
  const shownMode = useRef(mode);
  useEffect(() => {
    // the two looks of the canvas differ in room and in the cards' height
    if (shownMode.current !== mode) window.setTimeout(() => showReadably(flow), 60);
    shownMode.current = mode;
  }, [mode, flow]);
  useEffect(() => {
    // an imported or hand-written document may have no places at all: to look at it changes nothing
    const { save } = useEditor.getState();
    const elements = elementsOf(current());
    if (save.state === "saved" && elements.length > 1 && elements.every((element) => !placeOf(element)))
      window.setTimeout(() => {
        autoLayout(flow);
        autosave.takeAsSaved(current(), save);
      }, 80);
  }, [flow]);
  return (
    <div
      className="editor"
      data-mode={versions ? "versions" : mode}
      data-columns={(columns && !versions) || undefined}
    >
      <Header />
      <div className="workspace">
        {versions ? (
          <VersionList />
        ) : (
          mode === "edit" && (columns ? <ColumnsPanel /> : <Palette onAdd={add} />)
        )}
        <div className="stage">
          <Canvas onOpen={goToInspector} />
          {versions && <VersionBanner />}
          {empty && !versions && <EmptyCanvas />}
          <DeployPanel />
          <DeployPreview />
          {mode === "edit" && !versions && <Problems />}
        </div>
        {versions ? <VersionDetails /> : mode === "edit" ? <Inspector /> : <LivePanel />}
      </div>
      <ConflictDialog />
      <GoneDialog />
      <NameDialog />
      <TemplateDialog />
      <StateDialog />
      <NearSourcesDialog />
      <KeyboardMap />
      <SelectedActions />
      <ImportHost />
      <MissingFiles />
    </div>
  );
}

function EmptyCanvas() {
  const chooser = useRef<HTMLInputElement>(null);
  const { data } = useFiles(mayAct("editor"));
  const there = offered(data ?? []);
  return (
    <div className="stage__empty">
      <FilePlus2 aria-hidden="true" />
      <h2>Draw your pipeline</h2>
      <p>
        Drag a source from the left, then the steps for its rows, then a sink. Connect the right edge of one
        to the left edge of the next.
      </p>
      {mayAct("editor") && (
        <>
          <p>Or begin with your data: drop a file here, or</p>
          <button type="button" className="button" onClick={() => chooser.current?.click()}>
            <Upload aria-hidden="true" />
            Start with a file
          </button>
          <input
            ref={chooser}
            type="file"
            hidden
            aria-label="File to start with"
            onChange={(event) => {
              const file = event.target.files?.[0];
              if (file) addForFile(file, { x: 0, y: 0 });
              event.target.value = "";
            }}
          />
          {there.length > 0 && (
            <div className="row row--wrap" role="group" aria-label="Uploaded files to start with">
              <span>Uploaded already:</span>
              {there.map((file) => (
                <button
                  key={file.id}
                  type="button"
                  className="button button--small"
                  title={file.name}
                  onClick={() => addForStored(file, { x: 0, y: 0 })}
                >
                  <span className="ellipsis">{file.name}</span>
                </button>
              ))}
            </div>
          )}
        </>
      )}
    </div>
  );
}

mount(<EditorPage />);
