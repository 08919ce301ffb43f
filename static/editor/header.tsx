import { useMemo } from "react";
import {
  ChevronDown,
  CircleAlert,
  CircleCheck,
  CircleStop,
  CloudOff,
  Download,
  FileUp,
  Hash,
  History,
  LayoutTemplate,
  LoaderCircle,
  Pencil,
  Rocket,
  Trash2,
} from "lucide-react";
import { createPipeline } from "../shared/actions";
import { del, post, problemText } from "../shared/api";
import { useNow } from "../shared/clock";
import type { Command } from "../shared/commands";
import { chooseFile } from "../shared/download";
import { ago, exact } from "../shared/format";
import { useLive } from "../shared/live";
import { nameFault, TITLE_MAX, titleFault } from "../shared/names";
import { mayAct, roleReason } from "../shared/page";
import { isDeployed } from "../shared/status";
import type { PipelineItem } from "../shared/types";
import { confirm } from "../shared/ui/confirm";
import { Menu } from "../shared/ui/menu";
import { StatusMark, Tip } from "../shared/ui/parts";
import { toast, toastError } from "../shared/ui/toast";
import { autosave } from "./autosave";
import { deploy, deployBusy, runAgain, undeploy, useDeploy } from "./deploy";
import { pipelineTitle, withTitle } from "../shared/document";
import { ElsewhereMark } from "./elsewhere";
import { exportJson, exportYaml, readText } from "./files";
import { dropAllCopies, renameCopies } from "../shared/local-copies";
import { adopt, commit, current, setMode, useEditor } from "./store";
import { askName } from "./name-dialog";
import { askState } from "./state-dialog";
import { askTemplate } from "./template-dialog";
import { dropHistory, renameHistory } from "./undo-copies";
import { closeVersions, openVersions } from "./versions/store";

const NOTHING: PipelineItem["elsewhere"] = [];

/** The pipeline's state: pushed when the live connection has it, else as it was loaded. */
function usePipelineState() {
  const name = useEditor((state) => state.name);
  const loaded = useEditor((state) => state.pipeline);
  const pushed = useLive((state) => state.pipelines.find((pipeline) => pipeline.name === name));
  const newer = pushed && (!loaded || pushed.revision >= loaded.revision) ? pushed : loaded;
  return {
    status: pushed?.status ?? loaded?.status ?? "draft",
    differs: newer?.differs ?? false,
    elsewhere: newer?.elsewhere ?? NOTHING,
    failed: !!newer?.upgrade_failed,
    version: (pushed ?? loaded)?.deployed_version ?? null,
    deployed: isDeployed(pushed ?? loaded),
  };
}

export function Header() {
  const { status, differs, elsewhere, failed, version, deployed } = usePipelineState();
  const mode = useEditor((state) => state.mode);
  const name = useEditor((state) => pipelineTitle(state.history.present));
  const seesWhatRuns = useEditor((state) => state.deployed !== null);
  // not `disabled`: the focus would be gone when the dialog that follows gives it back
  const following = useDeploy();
  const busy = deployBusy(following);
  const shown = following.kind !== null; // a click shows the panel that was closed
  const settled = deployed && !differs && !failed; // there is nothing to deploy
  const again = settled && status === "ended";
  return (
    <header className="page__head">
      <nav className="crumbs" aria-label="Breadcrumb">
        <a href="/pipelines/">Pipelines</a>
        <span aria-hidden="true">/</span>
        <h1 className="crumbs__menu" aria-current="page">
          <PipelineMenu deployed={deployed} />
        </h1>
      </nav>
      <StatusMark status={status} pill />
      {deployed && differs && (
        <Tip
          text={
            mode === "live" && seesWhatRuns
              ? `You see the running version ${version}. The draft differs: choose Edit to see it, or Deploy to run it.`
              : `The draft differs from the running version ${version}. Choose Deploy to run the draft.`
          }
        >
          <span className="badge badge--warning" tabIndex={0}>
            differs from deployed
          </span>
        </Tip>
      )}
      {elsewhere.length > 0 && <ElsewhereMark elsewhere={elsewhere} />}
      <SaveMark />
      <div className="actions">
        <div className="segmented" role="group" aria-label="Mode">
          <button type="button" aria-pressed={mode === "edit"} onClick={editDraft}>
            Edit
          </button>
          <button type="button" aria-pressed={mode === "live"} onClick={() => setMode("live")}>
            Live
          </button>
        </div>
        {deployed && (
          <button
            className="button"
            disabled={!mayAct("editor")}
            aria-disabled={busy && shown}
            title={roleReason("editor") ?? `Stop all elements of ${name}`}
            onClick={() => void undeploy()}
          >
            <CircleStop aria-hidden="true" />
            <span className="wide-only">Undeploy</span>
            <span className="visually-hidden narrow-only">Undeploy</span>
          </button>
        )}
        <button
          className={`button deploy-button${settled && !again ? "" : " button--primary"}`}
          disabled={!mayAct("editor")}
          aria-disabled={busy}
          title={
            roleReason("editor") ??
            (again
              ? "It has ended: run it once more, from the beginning"
              : settled
                ? "The draft runs already"
                : "Check the draft and run it on the nodes")
          }
          onClick={() => void (again ? runAgain() : deploy())}
        >
          <Rocket aria-hidden="true" />
          {again ? "Run again" : deployed && differs ? "Deploy changes" : "Deploy"}
        </button>
      </div>
    </header>
  );
}

function editDraft(): void {
  closeVersions();
  setMode("edit");
}

function SaveMark() {
  const save = useEditor((state) => state.save);
  const now = useNow();
  if (!mayAct("editor")) return <span className="save muted">read only</span>;
  switch (save.state) {
    case "saved":
      return (
        <span className="save muted num" title={exact(save.at)} role="status" aria-label="Draft saved">
          <CircleCheck aria-hidden="true" />
          <span className="wide-only">
            {save.at === null ? "draft saved" : `draft saved ${ago(save.at, now)}`}
          </span>
        </span>
      );
    case "failed":
      return (
        <span className="save save--failed" role="alert" title={save.why}>
          <CloudOff aria-hidden="true" />
          not saved, kept in this browser
          <button className="button button--small" onClick={() => void autosave.flush()}>
            Save now
          </button>
        </span>
      );
    case "deleted":
    case "conflict":
      return (
        <span className="save save--failed">
          <CircleAlert aria-hidden="true" />
          {save.state === "deleted" ? "deleted by someone else" : "changed by someone else"}
        </span>
      );
    default:
      return (
        <span className="save muted" role="status" aria-label="Saving the draft">
          <LoaderCircle className="spin" aria-hidden="true" />
          <span className="wide-only">{save.state === "saving" ? "saving" : "unsaved"}</span>
        </span>
      );
  }
}

async function saveYaml(): Promise<void> {
  if (await autosave.flush()) exportYaml(current().metadata.name);
  else
    toast({
      tone: "error",
      title: "Not exported as YAML",
      text: "The server writes YAML from the saved draft, and yours is not saved. Export it as JSON, or save it first.",
    });
}

async function importFile(): Promise<void> {
  const file = await chooseFile(".yaml,.yml,.json");
  if (!file) return;
  try {
    const document = await readText(await file.text());
    if (!document) return;
    closeVersions();
    const metadata = { ...document.metadata, name: current().metadata.name };
    adopt(withTitle({ ...document, metadata }, pipelineTitle(current())));
    toast({
      tone: "done",
      title: `Imported ${file.name}`,
      text: "It replaced the draft. Ctrl Z brings the old one back.",
    });
  } catch (error) {
    toast({ tone: "error", title: `${file.name} was not imported`, text: problemText(error) });
  }
}

/** Gives it another title; a step that can be undone. */
async function rename(): Promise<void> {
  const next = await askName({
    title: "Rename the pipeline",
    action: "Rename",
    value: pipelineTitle(current()),
    fault: titleFault,
  });
  if (!next) return;
  closeVersions(); // nothing can be changed while one is looked at
  commit(withTitle(current(), next));
}

async function changeId(deployed: boolean): Promise<void> {
  const name = useEditor.getState().name;
  const next = await askName({
    title: "Change the pipeline's id",
    description: "Addresses, programs and messages name the pipeline by its id. Its name stays.",
    label: "Id",
    action: "Change the id",
    value: name,
    fault: nameFault,
  });
  if (!next || next === name) return;
  if (deployed) {
    toast({
      tone: "error",
      title: "The id was not changed",
      text: "The running pipeline uses its id. Undeploy it first, or duplicate it under another name.",
    });
    return;
  }
  try {
    if (!(await autosave.flush())) return;
    await post(`/pipelines/${encodeURIComponent(name)}/rename`, { name: next });
    renameCopies(name, next);
    renameHistory(name, next);
    window.location.assign(`/pipelines/${encodeURIComponent(next)}`);
  } catch (error) {
    toastError("The id was not changed", error);
  }
}

async function duplicate(): Promise<void> {
  const next = await askName({
    title: "Duplicate the pipeline",
    action: "Duplicate",
    value: `${pipelineTitle(current())} copy`.slice(0, TITLE_MAX),
    fault: titleFault,
  });
  if (!next) return;
  try {
    const { name } = await createPipeline(next, current());
    window.location.assign(`/pipelines/${encodeURIComponent(name)}`);
  } catch (error) {
    toastError("Not duplicated", error);
  }
}

async function saveAsTemplate(): Promise<void> {
  if (await autosave.flush()) askTemplate();
  else
    toast({
      tone: "error",
      title: "Not saved as a template",
      text: "A template is made of the saved draft, and yours is not saved. Save it first.",
    });
}

async function remove(): Promise<void> {
  const { name } = useEditor.getState();
  const title = pipelineTitle(current());
  const agreed = await confirm({
    title: `Delete ${title}?`,
    text: `The draft and all versions of ${title} are removed. This cannot be undone. Export it first if you may need it again.`,
    action: "Delete",
    danger: true,
  });
  if (!agreed) return;
  try {
    await del(`/pipelines/${encodeURIComponent(name)}`);
    autosave.base = null;
    dropAllCopies(name);
    dropHistory(name);
    window.location.assign("/pipelines/");
  } catch (error) {
    toastError("Not deleted", error);
  }
}

function PipelineMenu({ deployed }: { deployed: boolean }) {
  const name = useEditor((state) => pipelineTitle(state.history.present));
  const locked = roleReason("editor");
  return (
    <Menu
      trigger={
        <button className="crumb-menu" aria-label={`${name}, pipeline menu`}>
          <span className="ellipsis">{name}</span>
          <ChevronDown aria-hidden="true" />
        </button>
      }
      entries={[
        { title: "Rename", icon: <Pencil />, disabled: locked, run: () => void rename() },
        { title: "Change the id", icon: <Hash />, disabled: locked, run: () => void changeId(deployed) },
        { title: "Versions", icon: <History />, run: () => openVersions() },
        { title: "Duplicate", icon: <FileUp />, disabled: locked, run: () => void duplicate() },
        {
          title: "Save as template",
          icon: <LayoutTemplate />,
          disabled: locked,
          run: () => void saveAsTemplate(),
        },
        "line",
        { title: "Export as YAML", icon: <Download />, run: () => void saveYaml() },
        { title: "Export as JSON", icon: <Download />, run: () => exportJson(current()) },
        {
          title: "Export with its state",
          icon: <Download />,
          disabled: locked ?? (deployed ? null : "Deploy it first: it has no state yet."),
          run: askState,
        },
        { title: "Import a file", icon: <FileUp />, disabled: locked, run: () => void importFile() },
        "line",
        {
          title: "Delete",
          icon: <Trash2 />,
          danger: true,
          disabled: locked ?? (deployed ? "Undeploy it first." : null),
          run: () => void remove(),
        },
      ]}
    />
  );
}

/** The header's actions, for the command palette. */
export function useHeaderCommands(): Command[] {
  const { deployed } = usePipelineState();
  return useMemo(
    () => [
      { id: "deploy", title: "Deploy", disabled: roleReason("editor"), run: () => void deploy() },
      {
        id: "undeploy",
        title: "Undeploy",
        disabled: roleReason("editor") ?? (deployed ? null : "It is not deployed."),
        run: () => void undeploy(),
      },
      { id: "edit-mode", title: "Edit the draft", run: editDraft },
      { id: "versions", title: "Versions: view, compare, restore", run: () => openVersions() },
      { id: "live-mode", title: "Watch it live", run: () => setMode("live") },
      { id: "export-yaml", title: "Export as YAML", run: () => void saveYaml() },
      {
        id: "template",
        title: "Save as template",
        disabled: roleReason("editor"),
        run: () => void saveAsTemplate(),
      },
      { id: "import", title: "Import a file", disabled: roleReason("editor"), run: () => void importFile() },
    ],
    [deployed],
  );
}
