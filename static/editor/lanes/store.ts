/** The arrangement of the canvas, and the move that hangs over a lane or is about to be confirmed. */
import { create } from "zustand";
import { remember } from "../../shared/address";
import type { Point } from "../places";
import type { LaneLayout } from "./layout";
import type { Unit } from "./units";

export interface Hanging {
  units: readonly Unit[];
  /** the lane over which it hangs; null where there is none */
  over: string | null;
  /** held: still dragged. chosen: to be confirmed or given up */
  stage: "held" | "chosen";
}

interface Lanes {
  /** the canvas is arranged by node */
  on: boolean;
  hanging: Hanging | null;
  /** how far what hangs is from where React Flow has drawn it: px of the canvas */
  carried: Point | null;
  /** a drop moves at once */
  atOnce: boolean;
}

const AT_ONCE = "fogline-lanes-at-once";
const PARAM = "arranged";

const asked = (): boolean =>
  typeof window !== "undefined" && new URL(window.location.href).searchParams.get(PARAM) === "lanes";
const kept = (): boolean => typeof localStorage !== "undefined" && localStorage.getItem(AT_ONCE) === "yes";

export const useLanes = create<Lanes>(() => ({ on: asked(), hanging: null, carried: null, atOnce: kept() }));

export function arrangeInLanes(on: boolean): void {
  if (!on) onceLaid = null;
  useLanes.setState({ on, hanging: null });
  remember({ [PARAM]: on ? "lanes" : null });
}

export function setAtOnce(atOnce: boolean): void {
  localStorage.setItem(AT_ONCE, atOnce ? "yes" : "no");
  useLanes.setState({ atOnce });
}

export const hang = (units: readonly Unit[], over: string | null): void =>
  useLanes.setState({ hanging: { units, over, stage: "held" } });

/** Over another lane now. Nothing is told when it is the same one. */
export function hangOver(over: string | null): void {
  const { hanging } = useLanes.getState();
  if (hanging && hanging.over !== over) useLanes.setState({ hanging: { ...hanging, over } });
}

/** Carries what hangs with the pointer, by CSS alone. null: all is where React Flow draws it. */
export function carry(carried: Point | null): void {
  if (!carried && !useLanes.getState().carried) return;
  useLanes.setState({ carried });
  for (const node of document.querySelectorAll<HTMLElement>(".react-flow__node.hangs"))
    node.style.translate = carried ? `${carried.x}px ${carried.y}px` : "";
}

export const choose = (units: readonly Unit[], over: string): void =>
  useLanes.setState({ hanging: { units, over, stage: "chosen" } });

export const letGo = (): void => useLanes.setState({ hanging: null });

/** Gives up what is dragged, so that its drop changes nothing. Returns whether anything was dragged. */
export function giveUpDrag(): boolean {
  if (useLanes.getState().hanging?.stage !== "held") return false;
  carry(null);
  letGo();
  return true;
}

let layoutNow: LaneLayout | null = null;
let onceLaid: (() => void) | null = null;

/** The lanes as they are drawn now; null when the canvas is arranged as drawn. */
export const laneLayoutNow = (): LaneLayout | null => layoutNow;
export function keepLayout(layout: LaneLayout | null): void {
  layoutNow = layout;
  const run = layout && onceLaid;
  if (!run) return;
  onceLaid = null;
  run();
}

/** Runs something as soon as the lanes are drawn, however long that takes. */
export function whenLaid(run: () => void): void {
  if (layoutNow) run();
  else onceLaid = run;
}
