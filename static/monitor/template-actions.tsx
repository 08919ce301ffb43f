import { useEffect, useState } from "react";
import { Pencil, Play, Trash2 } from "lucide-react";
import { livePage } from "../shared/address";
import { del, post } from "../shared/api";
import { mayAct, page, roleReason } from "../shared/page";
import type { Operation, Pipeline, Template } from "../shared/types";
import { confirm } from "../shared/ui/confirm";
import { Problem } from "../shared/ui/parts";
import { toastError } from "../shared/ui/toast";
import { elementsOf } from "../shared/document";

const pipelinePage = (name: string): string => `/pipelines/${encodeURIComponent(name)}`;

/** What went wrong; `made`: the pipeline that was made nevertheless. */
interface Failed {
  error: unknown;
  made: string | null;
}

/** Deploys a pipeline of the template or opens one in the editor, and shows what went wrong. */
export function useUse(template: Template | undefined) {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<Failed | null>(null);
  useEffect(() => {
    // come back to by the browser's button: as it was when it led away
    const shown = ({ persisted }: PageTransitionEvent) => persisted && setBusy(false);
    window.addEventListener("pageshow", shown);
    return () => window.removeEventListener("pageshow", shown);
  }, []);
  const use = async (mark: boolean, then: (made: Pipeline) => Promise<string>) => {
    if (!template) return;
    setBusy(true);
    setFailed(null);
    let made: Pipeline | null = null;
    try {
      made = await post<Pipeline>(`/templates/${encodeURIComponent(template.name)}/pipelines`, { mark });
      window.location.assign(await then(made));
    } catch (error) {
      setFailed({ error, made: made?.name ?? null });
      setBusy(false);
    }
  };
  return {
    busy,
    failed,
    deploy: () => use(false, deployed),
    makeMine: () =>
      use(true, (made) => {
        const first = template?.replace[0];
        return Promise.resolve(
          pipelinePage(made.name) + (first ? `?element=${encodeURIComponent(first)}` : ""),
        );
      }),
  };
}

/** Its live view, which shows how the deployment goes; with its chart chosen, if it has one. */
async function deployed({ name, revision, document }: Pipeline): Promise<string> {
  const operation = await post<Operation>(`${pipelinePage(name)}/deploy`, { revision });
  const chart = elementsOf(document).find((element) => element.type === "live-chart");
  return `${livePage(name, chart?.id)}&operation=${encodeURIComponent(operation.id)}`;
}

type Use = ReturnType<typeof useUse>;

/** `of`: which one, where there are several. */
export function DeployButton({ busy, deploy, of, primary }: Use & { of?: string; primary?: boolean }) {
  const locked = roleReason("editor");
  return (
    <button
      type="button"
      className={`button ${primary ? "button--primary" : ""}`}
      disabled={busy || !!locked}
      aria-label={of && `Deploy ${of}`}
      title={locked ?? "Make a pipeline from it and run it at once"}
      onClick={() => void deploy()}
    >
      <Play aria-hidden="true" />
      Deploy
    </button>
  );
}

export function UseButtons(use: Use) {
  const locked = roleReason("editor");
  const { busy, makeMine } = use;
  return (
    <>
      <button
        type="button"
        className="button"
        disabled={busy || !!locked}
        title={locked ?? "Open a copy as a draft in the editor"}
        onClick={() => void makeMine()}
      >
        <Pencil aria-hidden="true" />
        Make it mine
      </button>
      <DeployButton {...use} primary />
    </>
  );
}

export function UseProblem({ failed }: Use) {
  if (!failed) return null;
  return (
    <div className="stack stack--tight">
      <Problem error={failed.error} />
      {failed.made && (
        <p className="small">
          The pipeline is kept as a draft: <a href={pipelinePage(failed.made)}>{failed.made}</a>. You can
          deploy or delete it there.
        </p>
      )}
    </div>
  );
}

/** Deletes a template that was saved here: for who saved it, and for admins. */
export function DeleteButton({ template }: { template: Template }) {
  const { name, title, made } = template;
  if (!made || !(mayAct("admin") || (mayAct("editor") && made.by === page.user.username))) return null;
  const remove = async () => {
    const agreed = await confirm({
      title: `Delete the template ${title}?`,
      text: "It goes from the gallery of everybody here. Pipelines that were made of it stay. This cannot be undone.",
      action: "Delete",
      danger: true,
    });
    if (!agreed) return;
    try {
      await del(`/templates/${encodeURIComponent(name)}`);
      window.location.assign("/templates/");
    } catch (error) {
      toastError("The template was not deleted", error);
    }
  };
  return (
    <button type="button" className="button" onClick={() => void remove()}>
      <Trash2 aria-hidden="true" />
      Delete
    </button>
  );
}
