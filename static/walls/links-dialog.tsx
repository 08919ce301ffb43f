/** Links that show a wall to whoever has one, without an account. */
import { useState } from "react";
import { Copy, Link2 } from "lucide-react";
import { del, get, post, problemText } from "../shared/api";
import { exact } from "../shared/format";
import type { WallLink, WallLinkMade } from "../shared/types";
import { confirm } from "../shared/ui/confirm";
import { Dialog } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";
import { Ago, Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { toast, toastError } from "../shared/ui/toast";
import { wallPath } from "../shared/wall-tiles";

const NAME_MAX = 60;

const addressOf = (wall: string, secret: string): string =>
  `${window.location.origin}${wallPath(wall)}/shared#${secret}`;

export function LinksDialog({ wall, onClose }: { wall: string; onClose: () => void }) {
  const path = `${wallPath(wall)}/links`;
  const { data, error, reload } = useLoaded(`links ${wall}`, (signal) => get<WallLink[]>(path, signal));
  const [made, setMade] = useState<WallLinkMade | null>(null);
  const revoke = async (link: WallLink) => {
    const agreed = await confirm({
      title: `Revoke ${link.name || "this link"}?`,
      text: "Whoever opens it sees nothing any more, within a few seconds. Other links keep working.",
      action: "Revoke the link",
      danger: true,
    });
    if (!agreed) return;
    try {
      await del(`${path}/${link.id}`);
      if (made?.id === link.id) setMade(null);
      toast({ tone: "done", title: `${link.name || "The link"} is revoked` });
      reload();
    } catch (problem) {
      toastError("The link was not revoked", problem);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title="Share this wall"
      description="Everybody with a link can see this wall and nothing else, without an account. A link ends when it was not used for 30 days."
    >
      <div className="stack">
        {made ? (
          <Made wall={wall} made={made} />
        ) : (
          <NewLink
            path={path}
            onMade={(link) => {
              setMade(link);
              reload();
            }}
          />
        )}
        {!data && (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={2} />)}
        {data && data.length > 0 && (
          <ul className="wall-links" aria-label="Links">
            {data.map((link) => (
              <li key={link.id}>
                <span className="stack stack--none">
                  <b>{link.name || "Link"}</b>
                  <span className="muted small">
                    <Ago at={link.created_at} prefix="made " />
                    {link.created_by ? ` by ${link.created_by}` : ""} ·{" "}
                    {link.last_used_at ? <Ago at={link.last_used_at} prefix="used " /> : "never used"} · ends{" "}
                    {exact(link.ends_at)} if nobody uses it
                  </span>
                </span>
                <button
                  type="button"
                  className="button button--quiet button--small"
                  aria-label={`Revoke ${link.name || "the link"}`}
                  onClick={() => void revoke(link)}
                >
                  Revoke
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Dialog>
  );
}

function NewLink({ path, onMade }: { path: string; onMade: (link: WallLinkMade) => void }) {
  const [name, setName] = useState("");
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    setFault("");
    try {
      onMade(await post<WallLinkMade>(path, { name: name.trim() }));
    } catch (problem) {
      setFault(problemText(problem));
      setBusy(false);
    }
  };
  return (
    <div className="row row--end">
      <div className="spring">
        <Text
          label="Who or what it is for"
          value={name}
          onChange={setName}
          onEnter={() => void make()}
          placeholder="Screen in hall 3"
          maxLength={NAME_MAX}
          fault={fault}
          alert
        />
      </div>
      <button type="button" className="button button--primary" disabled={busy} onClick={() => void make()}>
        <Link2 aria-hidden="true" />
        Make a link
      </button>
    </div>
  );
}

function Made({ wall, made }: { wall: string; made: WallLinkMade }) {
  const address = addressOf(wall, made.secret);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(address);
      toast({ tone: "done", title: "The link is copied" });
    } catch (error) {
      toastError("The link was not copied. Select it and copy it by hand", error);
    }
  };
  return (
    <div className="stack stack--tight">
      <label className="field">
        <span className="field__label">The link. Copy it now: it is shown this once.</span>
        <input
          className="input mono"
          readOnly
          value={address}
          onFocus={(event) => event.currentTarget.select()}
        />
      </label>
      <span>
        <button type="button" className="button button--primary" onClick={() => void copy()} autoFocus>
          <Copy aria-hidden="true" />
          Copy the link
        </button>
      </span>
    </div>
  );
}
