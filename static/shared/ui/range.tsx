const RANGES: readonly [number, string][] = [
  [5, "5 min"],
  [15, "15 min"],
  [60, "1 h"],
];

export const isRange = (minutes: number): boolean => RANGES.some(([each]) => each === minutes);

/** How far back charts go, in minutes. */
export function RangeChoice({ minutes, onChange }: { minutes: number; onChange: (minutes: number) => void }) {
  return (
    <div className="segmented" role="group" aria-label="Time range">
      {RANGES.map(([value, title]) => (
        <button key={value} type="button" aria-pressed={value === minutes} onClick={() => onChange(value)}>
          {title}
        </button>
      ))}
    </div>
  );
}
