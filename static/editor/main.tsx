import { useCallback, useEffect, useRef, useState } from "react";
import { ReactFlowProvider, useReactFlow } from "@xyflow/react";
import { FilePlus2 } from "lucide-react";
import { remember } from "../shared/address";
import { get } from "../shared/api";
import { live } from "../shared/live";
import { mount } from "../shared/mount";
import { page } from "../shared/page";
import type { Operator, Pipeline } from "../shared/types";
import { Problem, Skeleton } from "../shared/ui/parts";
import { toast } from "../shared/ui/toast";
import { autosave, dropLocalCopy, localCopy } from "./autosave";
import { Canvas, reveal, useAddByKey } from "./canvas";
import { ConflictDialog } from "./conflict";
import { DeployPanel } from "./deploy";
import { DeployPreview } from "./deploy-preview";
import { elementsOf, findElement } from "./document";
import { FIT } from "./flow";
import { Header, useHeaderCommands } from "./header";
import { Inspector } from "./inspector";
import { autoLayout, useEditorCommands, useKeyboard } from "./keyboard";
import { LivePanel } from "./live/drawer";
import { NameDialog } from "./name-dialog";
import { Palette } from "./palette";
import { Problems } from "./problems";
import { adopt, current, open, select, useEditor } from "./store";
import { stable } from "./merge";
import { startValidation } from "./validation";
import "./editor.css";
import "./cards.css";
import "./panels.css";
import "./narrow.css";

/** Changes that an earlier visit could not save: taken up, or put to the choice when the draft moved on. */
function takeUpLocalCopy(pipeline: Pipeline): void {
  const copy = localCopy(pipeline.name);
  if (!copy) return;
  if (stable(copy.document) === stable(pipeline.document)) return dropLocalCopy(pipeline.name);
  adopt(copy.document);
  if (copy.revision === pipeline.revision) {
    toast({
      tone: "info",
      title: "Your unsaved changes are back",
      text: "They were kept in this browser and are saved now.",
    });
    void autosave.flush();
  } else {
    useEditor.setState({
      save: { state: "conflict", theirs: pipeline.document, revision: pipeline.revision },
    });
  }
}

async function load(name: string): Promise<void> {
  const [pipeline, operators] = await Promise.all([
    get<Pipeline>(`/pipelines/${encodeURIComponent(name)}`),
    get<Operator[]>("/operators"),
  ]);
  open(pipeline, operators);
  useEditor.setState({ mode: page.mode ?? "edit" });
  const chosen = new URL(window.location.href).searchParams.get("element");
  if (chosen && findElement(pipeline.document, chosen)) select([chosen]);
  autosave.start(pipeline);
  takeUpLocalCopy(pipeline);
  startValidation();
  live.watchPipeline(name);
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
          <b>{name}</b>
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

function Workspace() {
  const mode = useEditor((state) => state.mode);
  const selected = useEditor((state) => state.selected);
  const empty = useEditor((state) => elementsOf(state.history.present).length === 0);
  const flow = useReactFlow();
  const commands = useHeaderCommands();
  const add = useAddByKey();
  useKeyboard(flow);
  useEditorCommands(flow, commands);
  useEffect(() => {
    const [id] = selected;
    remember({ element: selected.size === 1 && id ? id : null });
    if (selected.size === 1 && id) window.setTimeout(() => reveal(flow, id), 30);
  }, [selected, flow]);
  const shownMode = useRef(mode);
  useEffect(() => {
    // the two looks of the canvas differ in room and in the cards' height
    if (shownMode.current !== mode) window.setTimeout(() => void flow.fitView(FIT), 60);
    shownMode.current = mode;
  }, [mode, flow]);
  useEffect(() => {
    // an imported or hand-written document may have no places at all: to look at it changes nothing
    const { save } = useEditor.getState();
    const elements = elementsOf(current());
    if (save.state === "saved" && elements.length > 1 && elements.every((element) => !element.ui))
      window.setTimeout(() => {
        autoLayout(flow);
        autosave.takeAsSaved(current(), save);
      }, 80);
  }, [flow]);
  const openInspector = useCallback(
    () => document.querySelector<HTMLElement>(".panel--inspector input, .panel--inspector button")?.focus(),
    [],
  );
  return (
    <div className="editor" data-mode={mode}>
      <Header />
      <div className="workspace">
        {mode === "edit" && <Palette onAdd={add} />}
        <div className="stage">
          <Canvas onOpen={openInspector} />
          {empty && <EmptyCanvas />}
          <DeployPanel />
          <DeployPreview />
          {mode === "edit" && <Problems />}
        </div>
        {mode === "edit" ? <Inspector /> : <LivePanel />}
      </div>
      <ConflictDialog />
      <NameDialog />
    </div>
  );
}

function EmptyCanvas() {
  return (
    <div className="stage__empty">
      <FilePlus2 aria-hidden="true" />
      <h2>Draw your pipeline</h2>
      <p>
        Drag a source from the left, then what shall happen to its rows, then a sink. Connect them from the
        right edge of one to the left edge of the next.
      </p>
    </div>
  );
}

mount(<EditorPage />);
