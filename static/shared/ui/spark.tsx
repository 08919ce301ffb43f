import { sparkPaths } from "../points";

/** A small curve in a line of text or a tile. It has gaps, not zeros, where nothing is known. */
export function Spark({
  values,
  max,
  label,
}: {
  values: readonly (number | null | undefined)[];
  /** the upper end; else the largest value */
  max?: number;
  /** what it shows, with its figures, for screen readers */
  label: string;
}) {
  return (
    <svg className="spark" viewBox="0 0 100 28" preserveAspectRatio="none" role="img" aria-label={label}>
      {sparkPaths(values, max).map(({ line, area }) => (
        <g key={line}>
          <path d={area} className="spark__area" />
          <path d={line} className="spark__line" vectorEffect="non-scaling-stroke" />
        </g>
      ))}
    </svg>
  );
}
