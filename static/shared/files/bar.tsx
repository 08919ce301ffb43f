import { percent } from "../format";

/** How much of a work is done. Without a total it is not known, and the bar moves. */
export function Bar({ label, done, total }: { label: string; done: number; total: number }) {
  const share = total > 0 ? Math.min(1, done / total) : null;
  return (
    <span
      className={`bar${share === null ? " bar--unknown" : ""}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={share === null ? undefined : Math.round(share * 100)}
      aria-valuetext={share === null ? undefined : percent(share)}
    >
      <span className="bar__done" style={share === null ? undefined : { transform: `scaleX(${share})` }} />
    </span>
  );
}
