/** A wall for whoever has a link to it. Its secret stands behind the # of the address, which no server sees. */
import { useEffect } from "react";
import { Unlink } from "lucide-react";
import { ApiError, askByLink, get } from "../shared/api";
import { mount } from "../shared/mount";
import { page } from "../shared/page";
import type { Wall } from "../shared/types";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { Board } from "./board";
import { useWallState } from "./wall-state";
import { wallPath } from "../shared/wall-tiles";
import { follow, open, useWall } from "./wall-store";
import "./walls.css";

const id = page.wall ?? "";

const isOver = (error: unknown): boolean =>
  error instanceof ApiError && [401, 403, 404].includes(error.status);

function SharedPage() {
  const { data, error, reload } = useLoaded(`wall ${id}`, async (signal) => {
    open(await get<Wall>(wallPath(id), signal));
    return true;
  });
  if (isOver(error)) return <Over />;
  if (!data)
    return (
      <div className="wall">
        {error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} height={120} />}
      </div>
    );
  return <Loaded />;
}

function Loaded() {
  const title = useWall((state) => state.history.present.title);
  const shown = useWallState(id);
  const revision = shown.received?.state.revision;
  useEffect(() => {
    document.title = `${title} · Fogline`;
  }, [title]);
  useEffect(() => {
    if (revision !== undefined) void follow(revision).catch(() => undefined);
  }, [revision]);
  if (isOver(shown.error)) return <Over />;
  return (
    <div className="wall wall--shared">
      <h1 className="wall__title">{title}</h1>
      <Board shown={shown} actions={null} />
    </div>
  );
}

function Over() {
  return (
    <div className="empty wall-over" role="alert">
      <Unlink aria-hidden="true" />
      <h1>This link does not work any more</h1>
      <p>
        It was revoked, nobody used it for 30 days, or the wall was deleted. Ask whoever gave it to you for a
        new one.
      </p>
    </div>
  );
}

askByLink(window.location.hash.slice(1));
// another link of the same wall changes nothing but the part behind the #
window.addEventListener("hashchange", () => window.location.reload());
mount(<SharedPage />, { byLink: true });
