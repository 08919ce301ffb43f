import { useEffect, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import "./resizer.css";

/** px that the arrow keys move it by */
const STEP = 16;
const MIN = 280;
/** what is beside the panel keeps so much, px */
const REST = 360;

const keyOf = (name: string): string => `fogline-width-${name}`;

function remembered(name: string): number | null {
  const width = Number(localStorage.getItem(keyOf(name)));
  return width >= MIN ? width : null;
}

/** The widest that the panel may be now, px. */
const widest = (panel: HTMLElement | null): number =>
  Math.max(MIN, (panel?.parentElement?.clientWidth ?? window.innerWidth) - REST);

/**
 * The left edge of the panel that it stands in first, by which the panel is made wider: by mouse, touch or arrow
 * keys; twice clicked, or Home, it is as wide as at first. The width is kept in this browser, as `--width-<name>`
 * at the root element; the style sheet has what it is without.
 */
export function Resizer({ name, label }: { name: string; label: string }) {
  const edge = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(() => remembered(name));
  const [shown, setShown] = useState<number>(MIN);
  const panel = () => edge.current?.parentElement ?? null;
  useEffect(() => {
    const { style } = document.documentElement;
    if (width === null) style.removeProperty(`--width-${name}`);
    else style.setProperty(`--width-${name}`, `${width}px`);
    setShown(Math.round(panel()?.offsetWidth ?? MIN));
  }, [name, width]);
  const take = (wanted: number | null) => {
    const next = wanted && Math.round(Math.min(widest(panel()), Math.max(MIN, wanted)));
    if (next === null) localStorage.removeItem(keyOf(name));
    else localStorage.setItem(keyOf(name), String(next));
    setWidth(next);
  };
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    const right = panel()?.getBoundingClientRect().right ?? 0;
    take(right - event.clientX);
  };
  const press = (event: KeyboardEvent) => {
    const now = panel()?.offsetWidth ?? MIN;
    const wanted = { ArrowLeft: now + STEP, ArrowRight: now - STEP, Home: null, End: widest(panel()) }[
      event.key
    ];
    if (wanted === undefined) return;
    event.preventDefault();
    take(wanted);
  };
  return (
    <div
      ref={edge}
      className="resizer"
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={shown}
      aria-valuemin={MIN}
      aria-valuemax={Math.max(shown, widest(panel()))}
      title="Drag, or use the arrow keys. Double-click for the usual width."
      onPointerDown={(event) => {
        event.preventDefault(); // or the drag selects the text that it passes
        event.currentTarget.setPointerCapture(event.pointerId);
        event.currentTarget.focus({ preventScroll: true });
      }}
      onPointerMove={drag}
      onDoubleClick={() => take(null)}
      onKeyDown={press}
    />
  );
}
