/** A button that holds what would go on by itself, and lets it go on. */
export function HoldButton({
  held,
  onHold,
  className = "button button--small",
}: {
  held: boolean;
  onHold: (held: boolean) => void;
  className?: string;
}) {
  return (
    <button type="button" className={className} aria-pressed={held} onClick={() => onHold(!held)}>
      {held ? "Follow again" : "Hold"}
    </button>
  );
}
