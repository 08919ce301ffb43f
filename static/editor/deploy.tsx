import { useEffect, useLayoutEffect, useRef } from "react";
import { CircleAlert, CircleCheck, Circle, LoaderCircle, X } from "lucide-react";
import { create } from "zustand";
import { remember } from "../shared/address";
import { ApiError, get, post, problemText } from "../shared/api";
import { Asker } from "../shared/asker";
import { plural, seconds } from "../shared/format";
import { useLive } from "../shared/live";
import { nameIn } from "../shared/live-reducer";
import { mayAct, roleReason } from "../shared/page";
import type { DeployPlan, Fault, Operation, OperationKind, PipelineVersion } from "../shared/types";
import { stepWords } from "../shared/words";
import { confirm } from "../shared/ui/confirm";
import { ErrorCode } from "../shared/ui/error-code";
import { forget, toast, toastError } from "../shared/ui/toast";
import { autosave } from "./autosave";
import { toAgree } from "./deploy-changes";
import { confirmChanges, type Deployed } from "./deploy-preview";
import { elementsOf, pipelineTitle } from "../shared/document";
import { current, setMode, useEditor } from "./store";
import { insist } from "./touched";
import { lostNow, NEXT_ROW_S } from "./undelivered";
import { validateNow } from "./validation";
import { WaitingRows } from "./waiting-rows";

interface Following {
  /** null: nothing to show */
  kind: OperationKind | null;
  operation: Operation | null;
  /** before the server has an operation: saving, validating */
  preparing: string | null;
}

/** What is said of a deployment goes when another one is ordered. */
const ABOUT = "deployment";

const IDLE: Following = { kind: null, operation: null, preparing: null };
export const useDeploy = create<Following>(() => IDLE);

const path = () => `/pipelines/${encodeURIComponent(useEditor.getState().name)}`;

export const deployBusy = (following: Following): boolean =>
  following.preparing !== null ||
  following.operation?.status === "pending" ||
  following.operation?.status === "running";

function showFaults(title: string, faults: readonly Fault[]): void {
  useEditor.setState({ problemsOpen: true });
  insist(faults);
  toast({
    tone: "error",
    title,
    about: ABOUT,
    text: `Mend ${plural(faults.length, "problem")} first; the list is below the canvas. Nothing was changed on the nodes.`,
  });
}

/** Save, validate, then deploy; stops with the reason at the first that fails. */
export async function deploy(): Promise<void> {
  if (deployBusy(useDeploy.getState())) return;
  forget(ABOUT);
  useDeploy.setState({ ...IDLE, kind: "deploy", preparing: "Saving the draft" });
  try {
    if (!(await autosave.flush())) {
      toast({
        tone: "error",
        title: "Not deployed",
        about: ABOUT,
        text: "The draft could not be saved; nothing was changed on the nodes.",
      });
      return;
    }
    const { revision } = autosave; // what is validated and agreed to: another may save meanwhile
    useDeploy.setState({ preparing: "Checking the pipeline" });
    const result = await validateNow();
    if (result && result.faults.length > 0) return showFaults("Not deployed", result.faults);
    if (elementsOf(current()).length === 0) {
      toast({
        tone: "error",
        title: "Not deployed",
        about: ABOUT,
        text: "The pipeline has no elements yet. Drag one from the left.",
      });
      return;
    }
    const what = { title: pipelineTitle(current()), document: current(), isDraft: true };
    await agreeAndStart(what, { revision });
  } catch (error) {
    if (error instanceof ApiError && error.problem.faults?.length) {
      useEditor.setState({ faults: error.problem.faults, checked: current() });
      showFaults("Not deployed", error.problem.faults);
    } else toastError("Not deployed", error, ABOUT);
  } finally {
    useDeploy.setState({ preparing: null });
  }
}

/** An earlier version, as it was; the draft stays as it is. */
export async function deployVersion(version: PipelineVersion): Promise<void> {
  if (deployBusy(useDeploy.getState())) return;
  useDeploy.setState({ ...IDLE, kind: "deploy" });
  try {
    const title = `${pipelineTitle(current())}, version ${version.number}`;
    const what = { title, document: version.document, isDraft: false };
    await agreeAndStart(what, { version: version.number });
  } catch (error) {
    toastError(`Version ${version.number} was not deployed`, error, ABOUT);
  } finally {
    useDeploy.setState({ preparing: null });
  }
}

async function agreeAndStart(
  what: Deployed,
  which: { revision: number } | { version: number },
): Promise<void> {
  useDeploy.setState({ preparing: "Looking at what will change" });
  const restart = await agreed(what, which);
  if (restart === "again") return runAgain();
  if (!restart) return;
  useDeploy.setState({ kind: "deploy", preparing: "Starting" });
  // the dialog has checked what is expected, or its user did not want to wait for that
  const order = { ...which, restart, check_expected: false };
  follow("deploy", await post<Operation>(`${path()}/deploy`, order));
}

const pipelineNow = () => {
  const { name, pipeline } = useEditor.getState();
  return useLive.getState().pipelines.find((each) => each.name === name) ?? pipeline;
};

/** What has ended runs once more from the beginning. The server deploys it when it is undeployed. */
export async function runAgain(): Promise<void> {
  const pipeline = pipelineNow();
  const version = pipeline?.deployed_version;
  if (deployBusy(useDeploy.getState()) || version == null) return;
  const name = pipelineTitle(current());
  const yes = await confirm({
    title: `Run ${name} again?`,
    text: `${name} has read its recordings to their end. Version ${version} is undeployed and deployed again: it starts from the beginning, with an empty state. What this run has written to topics and files of your own stays.`,
    action: "Run again",
  });
  if (!yes) return;
  try {
    follow("undeploy", await post<Operation>(`${path()}/run-again`));
  } catch (error) {
    toastError("It does not run again", error, ABOUT);
  }
}

/**
 * Shows what will change. Resolves to the elements that may lose their state, to null if the user does not
 * agree, or to "again" if nothing changes and what runs has ended.
 */
async function agreed(what: Deployed, which: object): Promise<string[] | "again" | null> {
  const plan = await post<DeployPlan>(`${path()}/deploy`, { ...which, dry_run: true });
  useDeploy.setState(IDLE);
  const asked = toAgree(plan);
  if (asked === "changes") return confirmChanges(plan.changes, what);
  if (asked === "again") {
    const yes = await confirm({
      title: `Try to change ${what.title} again?`,
      text: "The last deployment of this version failed. The elements that did not start then start again with their state; running elements are not affected.",
      action: "Try again",
    });
    return yes ? [] : null;
  }
  if (pipelineNow()?.status === "ended") return "again";
  toast({ tone: "info", title: "Nothing to deploy", about: ABOUT, text: "This version runs already." });
  return null;
}

export async function undeploy(): Promise<void> {
  const { operation } = useDeploy.getState();
  if (operation && deployBusy(useDeploy.getState())) useDeploy.setState({ kind: operation.kind });
  if (deployBusy(useDeploy.getState())) return;
  const name = pipelineTitle(current());
  const agreed = await confirm({
    title: `Undeploy ${name}?`,
    text: (
      <>
        All elements of {name} stop after their current batch. If some deliver to a system outside, its
        sources stop first. <WaitingRows path={path()} /> Its checkpoints and files are kept for a while, and
        the draft stays as it is. A later deployment starts from the beginning.
      </>
    ),
    action: "Undeploy",
    danger: true,
  });
  if (!agreed) return;
  try {
    follow("undeploy", await post<Operation>(`${path()}/undeploy`));
  } catch (error) {
    toastError("Not undeployed", error, ABOUT);
  }
}

/** The operation goes on without waiting for deliveries: this one, whatever runs when the user has agreed. */
async function goOnNow({ id, kind, again }: Operation): Promise<void> {
  const action = nowWords(kind);
  const agreed = await confirm({
    title: `${action}: ${pipelineTitle(current())}?`,
    text: (
      <>
        Fogline does not wait any longer. Rows that are not read or not delivered then are lost.{" "}
        <LostNow id={id} />
        {again && " Then it is deployed again, as was ordered."}
      </>
    ),
    action,
    danger: true,
  });
  if (!agreed) return;
  try {
    const operation = await post<Operation>(`/operations/${id}/hurry`);
    if (useDeploy.getState().operation?.id === id) useDeploy.setState({ operation });
  } catch (error) {
    toastError(`${action}: it did not work`, error, ABOUT);
  }
}

const nowWords = (kind: OperationKind) => (kind === "undeploy" ? "Undeploy now" : "Go on now");

/** How many rows wait, as long as the user thinks about it. */
function LostNow({ id }: { id: string }) {
  const { operation } = useDeploy();
  return lostNow(operation?.id === id ? operation.undelivered : []);
}

/** The operation that the address names: the page that has ordered it leads here. */
export async function followFromAddress(): Promise<void> {
  const id = new URL(window.location.href).searchParams.get("operation");
  if (!id) return;
  remember({ operation: null });
  const operation = await get<Operation>(`/operations/${encodeURIComponent(id)}`).catch(() => null);
  if (operation?.pipeline === useEditor.getState().name)
    useDeploy.setState({ kind: operation.kind, operation, preparing: null });
}

function follow(kind: "deploy" | "undeploy", operation: Operation): void {
  forget(ABOUT);
  useDeploy.setState({ kind, operation, preparing: null });
  if (kind === "deploy") setMode("live");
}

/** Takes the operation from live events, and asks for it while there are none. */
function useFollow(): void {
  const { operation } = useDeploy();
  const id = operation?.id;
  const pushed = useLive((state) => (id ? state.operations[id] : undefined));
  useEffect(() => {
    if (pushed) useDeploy.setState({ operation: pushed });
  }, [pushed]);
  const ended = operation?.status === "done" || operation?.status === "failed";
  const next = operation?.next;
  useEffect(() => {
    if (!next) return;
    const asker = new Asker();
    asker.again(
      (signal) => get<Operation>(`/operations/${encodeURIComponent(next)}`, signal),
      (following) => follow("deploy", following),
      () => undefined, // the live state shows what runs
    );
    return () => asker.stop();
  }, [next]);
  useEffect(() => {
    if (!id || ended) return;
    const asker = new Asker();
    const ask = () =>
      asker.again(
        (signal) => get<Operation>(`/operations/${encodeURIComponent(id)}`, signal),
        (next) => useDeploy.setState({ operation: next }),
        () => undefined, // it is asked again
      );
    ask();
    const timer = window.setInterval(ask, 1000);
    return () => {
      window.clearInterval(timer);
      asker.stop();
    };
  }, [id, ended]);
  useEffect(() => {
    if (!ended || !operation) return;
    if (operation.status === "failed" && operation.faults?.length)
      useEditor.setState({ faults: operation.faults, checked: current(), problemsOpen: true });
    if (operation.status === "done" && !operation.next && operation.undelivered.length === 0) {
      const timer = window.setTimeout(
        () => useDeploy.getState().operation?.id === operation.id && useDeploy.setState(IDLE),
        3500,
      );
      return () => window.clearTimeout(timer);
    }
  }, [ended, operation]);
}

const TITLES = {
  deploy: { active: "Deploying", done: "Deployed", failed: "Deployment failed" },
  upgrade: { active: "Deploying the changes of", done: "Changed", failed: "Change failed of" },
  undeploy: { active: "Undeploying", done: "Undeployed", failed: "Undeployment failed" },
};

export function DeployPanel() {
  useFollow();
  const { kind, operation, preparing } = useDeploy();
  const name = useEditor((state) => state.name);
  const title = useEditor((state) => pipelineTitle(state.history.present));
  const elements = useLive((state) => state.elements);
  if (!kind || (!preparing && !operation)) return null;
  // the server knows best: deploying over what runs is an upgrade
  const titles = TITLES[operation?.kind ?? kind];
  const lost = operation?.status === "done" && operation.undelivered.length > 0;
  const state = operation?.status === "done" ? "done" : operation?.status === "failed" ? "failed" : "active";
  return (
    <section className={`deploy deploy--${state}`} aria-label="What is under way" tabIndex={-1}>
      <div className="deploy__told" role="status" aria-label="Progress">
        <header className="deploy__head">
          <StepIcon state={state === "active" ? "running" : state} />
          <b>
            {titles[state]} {title}
          </b>
          <span className="spring" />
          <button
            className="button button--quiet button--icon button--small"
            aria-label="Close"
            onClick={() => useDeploy.setState({ kind: null })}
          >
            <X aria-hidden="true" />
          </button>
        </header>
        {preparing && <p className="muted">{preparing}…</p>}
        {operation && operation.steps.length > 0 && (
          <ol className="deploy__steps">
            {operation.steps.map((step) => (
              <li key={step.name} data-state={step.state}>
                <StepIcon state={step.state} />
                {stepWords(step, (id) => nameIn(elements, name, id))}
                <span className="visually-hidden">{step.state}</span>
              </li>
            ))}
          </ol>
        )}
        {operation?.message && (
          <p className={state === "failed" || lost ? "handover__wrong" : "muted"}>{operation.message}</p>
        )}
      </div>
      {operation && <Waiting operation={operation} />}
      <ErrorCode code={operation?.code} />
      {state === "failed" && operation && operation.faults.length === 0 && !operation.message && (
        <p>{problemText(new Error("The server gave no reason. See Events."))}</p>
      )}
    </section>
  );
}

/** What the step that is under way waits for, and for how long at most. */
function Waiting({ operation }: { operation: Operation }) {
  const { status, phase, steps, waits_for } = operation;
  const forDeliveries =
    phase === "DELIVER" ||
    // an undeployment lets rows be read so that they can be delivered
    (["READ", "RETIRE"].includes(phase) && steps.some(({ name }) => name === "deliver"));
  return (
    <>
      {waits_for && (
        <p className="muted">
          Waits for {waits_for}. {atMost(operation)}
        </p>
      )}
      {status === "running" && forDeliveries && <GoOnNow operation={operation} />}
    </>
  );
}

function atMost({ phase, phase_since, deadline }: Operation): string {
  if (phase === "DELIVER") return `It goes on when no row was delivered for ${NEXT_ROW_S} s.`;
  if (!phase_since || !deadline) return "";
  // both by the server's clock
  const most_ms = Date.parse(deadline) - Date.parse(phase_since);
  return `At most ${seconds(Math.round(most_ms / 1000) * 1000).replace(" min 0 s", " min")} in this step.`;
}

function GoOnNow({ operation }: { operation: Operation }) {
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    const was = button.current;
    return () => {
      // it goes when the wait ends, and the focus would be gone with it
      if (document.activeElement === was) was?.closest("section")?.focus();
    };
  }, []);
  return (
    <button
      ref={button}
      className="button button--small"
      disabled={!mayAct("editor")}
      aria-disabled={operation.hurry}
      title={roleReason("editor") ?? undefined}
      onClick={() => !operation.hurry && void goOnNow(operation)}
    >
      {nowWords(operation.kind)}
    </button>
  );
}

function StepIcon({ state }: { state: string }) {
  if (state === "done") return <CircleCheck className="step step--done" aria-hidden="true" />;
  if (state === "failed") return <CircleAlert className="step step--failed" aria-hidden="true" />;
  if (state === "running" || state === "active")
    return <LoaderCircle className="step step--running spin" aria-hidden="true" />;
  return <Circle className="step" aria-hidden="true" />;
}
