/** How much room a tile has for what it shows, and how large its letters are at least. */
import { createContext, useContext, useEffect, useState, type RefObject } from "react";

/** Whether the wall fills a whole screen, which is read from afar: nobody scrolls or points there. */
export const Afar = createContext(false);

export interface Room {
  /** px */
  height: number;
  width: number;
  /** of its letters, px: as walls.css has it for this screen */
  least_px: number;
  afar: boolean;
}

const NONE = { height: 0, width: 0, least_px: 0 };

/** The room of `place`; its height is 0 before it is known. */
export function useRoom(place: RefObject<HTMLElement | null>): Room {
  const afar = useContext(Afar);
  const [room, setRoom] = useState(NONE);
  useEffect(() => {
    const target = place.current;
    if (!target) return;
    const look = () =>
      setRoom({
        height: Math.round(target.clientHeight),
        width: Math.round(target.clientWidth),
        least_px: parseFloat(getComputedStyle(target).fontSize),
      });
    const seen = new ResizeObserver(look);
    seen.observe(target);
    return () => seen.disconnect();
  }, [place, afar]);
  return { ...room, afar };
}
