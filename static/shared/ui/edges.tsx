/** Marks what is wider than its place: a shade at each edge behind which there is more. */
import { useCallback, type ReactNode } from "react";
import "./edges.css";

/** Pure: at which edges of a scroller more lies. Lengths in px; a part of a pixel is nothing. */
export function moreAt(scroller: { scrollLeft: number; scrollWidth: number; clientWidth: number }): string {
  const left = Math.abs(scroller.scrollLeft);
  const sides = { left: left > 1, right: scroller.scrollWidth - scroller.clientWidth - left > 1 };
  return [sides.left && "left", sides.right && "right"].filter(Boolean).join(" ");
}

function watch(scroller: HTMLElement): () => void {
  const show = () => {
    const frame = scroller.parentElement;
    if (frame) frame.dataset.more = moreAt(scroller);
  };
  const sizes = new ResizeObserver(show);
  sizes.observe(scroller);
  // what is scrolled may grow while its place stays
  if (scroller.firstElementChild) sizes.observe(scroller.firstElementChild);
  scroller.addEventListener("scroll", show, { passive: true });
  show();
  return () => {
    sizes.disconnect();
    scroller.removeEventListener("scroll", show);
  };
}

/** Its one child scrolls sideways, and takes the `ref` that it is given. */
export function Edges({
  className = "",
  children,
}: {
  className?: string;
  children: (ref: (scroller: HTMLElement | null) => (() => void) | undefined) => ReactNode;
}) {
  const ref = useCallback((scroller: HTMLElement | null) => (scroller ? watch(scroller) : undefined), []);
  return <div className={`edges ${className}`}>{children(ref)}</div>;
}
