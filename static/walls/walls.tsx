/** All walls. */
import { useState } from "react";
import { LayoutDashboard, Plus } from "lucide-react";
import { takeNew } from "../shared/address";
import { get, post, problemText } from "../shared/api";
import { plural } from "../shared/format";
import { mount } from "../shared/mount";
import { titleFault } from "../shared/names";
import { roleReason } from "../shared/page";
import type { Wall, WallItem } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";
import { Frame } from "../shared/ui/frame";
import { Ago, Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { WALL_TITLE_MAX, wallPath } from "../shared/wall-tiles";
import "./walls.css";

const ASKED = takeNew();

function WallsPage() {
  const locked = roleReason("operator");
  const [making, setMaking] = useState(ASKED && !locked);
  const { data, error, reload } = useLoaded("walls", (signal) => get<WallItem[]>("/walls", signal));
  const add = (
    <button
      type="button"
      className="button button--primary"
      disabled={!!locked}
      title={locked ?? undefined}
      onClick={() => setMaking(true)}
    >
      <Plus aria-hidden="true" />
      New wall
    </button>
  );
  return (
    <Frame title="Walls" actions={add}>
      {!data && (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={3} height={64} />)}
      {data?.length === 0 && (
        <div className="card empty">
          <LayoutDashboard aria-hidden="true" />
          <h2>No walls yet</h2>
          <p>
            A wall fills a screen with charts, figures, tables and pipelines of your choice, from any
            pipelines. It can be shared by a link that shows it without an account.
          </p>
          {add}
        </div>
      )}
      {data && data.length > 0 && (
        <ul className="grid wall-list">
          {data.map((wall) => (
            <li key={wall.id}>
              <a className="card card__body wall-list__item" href={wallPath(wall.id)}>
                <b className="ellipsis">{wall.title}</b>
                <span className="muted small">
                  {plural(wall.tiles, "tile")} · <Ago at={wall.changed_at} prefix="changed " />
                  {wall.changed_by ? ` by ${wall.changed_by}` : ""}
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
      {making && <NewWall onClose={() => setMaking(false)} />}
    </Frame>
  );
}

function NewWall({ onClose }: { onClose: () => void }) {
  const [title, setTitle] = useState("");
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  const wrong = title === "" ? null : titleFault(title, WALL_TITLE_MAX);
  const ready = title !== "" && !wrong && !busy;
  const make = async () => {
    if (!ready) return;
    setBusy(true);
    setFault("");
    try {
      const { id } = await post<Wall>("/walls", { title: title.trim() });
      window.location.assign(wallPath(id));
    } catch (problem) {
      setFault(problemText(problem));
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="New wall"
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="button"
            className="button button--primary"
            disabled={!ready}
            onClick={() => void make()}
          >
            Make the wall
          </button>
        </>
      }
    >
      <Text
        label="Name"
        value={title}
        onChange={setTitle}
        onEnter={() => void make()}
        fault={wrong ?? fault}
        alert={!!fault}
        placeholder="Hall 3"
        maxLength={WALL_TITLE_MAX}
        autoFocus
      />
    </Dialog>
  );
}

mount(<WallsPage />);
