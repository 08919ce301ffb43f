import { useEffect, useState, type ReactNode } from "react";
import { CircleAlert, TriangleAlert } from "lucide-react";
import * as RTooltip from "@radix-ui/react-tooltip";
import { codeOf, problemText } from "../api";
import { ErrorCode } from "./error-code";
import { Asker } from "../asker";
import { useNow } from "../clock";
import { ago, count, exact } from "../format";
import type { Waiting } from "../points";
import { toneOf, wordOf } from "../status";

/** The status as a shape and a colour, with its word on hover and for screen readers. */
export function StatusDot({ status }: { status: string }) {
  return (
    <span className={`status status--${toneOf(status)}`} title={wordOf(status)}>
      <span className="status__dot" aria-hidden="true" />
      <span className="visually-hidden">{wordOf(status)}</span>
    </span>
  );
}

export function StatusMark({ status, pill, word }: { status: string; pill?: boolean; word?: string }) {
  return (
    <span className={`status status--${toneOf(status)}${pill ? " status--pill" : ""}`}>
      <span className="status__dot" aria-hidden="true" />
      {word ?? wordOf(status)}
    </span>
  );
}

/** "4 s ago", with the exact time on hover. */
export function Ago({ at, prefix }: { at: string | number | null | undefined; prefix?: string }) {
  const now = useNow();
  return (
    <time className="num" title={exact(at)}>
      {prefix}
      {ago(at, now)}
    </time>
  );
}

export function Tip({
  text,
  children,
  side,
}: {
  text: ReactNode;
  children: ReactNode;
  side?: "top" | "right" | "bottom" | "left";
}) {
  const [open, setOpen] = useState(false);
  if (open && !text) setOpen(false);
  // Always around the children, so that they stay, with their focus, when a text comes or goes. A text that
  // arrives later waits for the next request: perhaps nobody points at it any more.
  return (
    <RTooltip.Root open={open} onOpenChange={(next) => setOpen(next && !!text)}>
      <RTooltip.Trigger asChild>{children}</RTooltip.Trigger>
      <RTooltip.Portal>
        <RTooltip.Content className="tip" sideOffset={6} side={side} collisionPadding={8}>
          {text}
        </RTooltip.Content>
      </RTooltip.Portal>
    </RTooltip.Root>
  );
}

export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <div className="notice notice--error" role="alert">
      <CircleAlert aria-hidden="true" />
      <div className="stack stack--tight">
        <span>{problemText(error)}</span>
        <ErrorCode code={codeOf(error)} />
        {onRetry && (
          <span>
            <button className="button button--small" onClick={onRetry}>
              Try again
            </button>
          </span>
        )}
      </div>
    </div>
  );
}

export function Warning({ children }: { children: ReactNode }) {
  return (
    <div className="notice notice--warning">
      <TriangleAlert aria-hidden="true" />
      <div>{children}</div>
    </div>
  );
}

export function Skeleton({ lines = 3, height = 18 }: { lines?: number; height?: number }) {
  return (
    <div className="stack stack--tight" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} className="skeleton" style={{ height, width: `${92 - ((line * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  reload: () => void;
}

/** Load once per key, and again on `reload` or each `everyMs`, though not before the last answer is here. An
 * old answer stays until a new one is here. Once `everyMs` is taken away, what is here stays. */
export function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  everyMs?: number,
): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: unknown }>({ key });
  const [turn, setTurn] = useState(0);
  const [asker] = useState(() => new Asker());
  const take = (data: T) => setState({ key, data });
  const fail = (error: unknown) =>
    setState((old) => ({ key, data: old.key === key ? old.data : undefined, error }));
  // `load` is a new function on each render; `key` says what it loads
  useEffect(() => {
    asker.ask(load, take, fail);
    return () => asker.stop();
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key, turn]);
  const current = state.key === key;
  useEffect(() => {
    if (!everyMs) {
      if (current && state.data !== undefined) asker.stop(); // an answer on its way would replace it
      return;
    }
    const timer = window.setInterval(() => {
      if (document.visibilityState === "visible") asker.again(load, take, fail);
    }, everyMs);
    return () => window.clearInterval(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key, everyMs]);
  return {
    data: current ? state.data : undefined,
    error: current ? state.error : undefined,
    reload: () => setTurn((old) => old + 1),
  };
}

export function Figure({
  label,
  value,
  unit,
  tone,
  title,
  wide = false,
}: {
  label: string;
  value: ReactNode;
  unit?: string;
  tone?: string;
  title?: string;
  /** of two columns, where they are narrow */
  wide?: boolean;
}) {
  const tones = `${tone ? ` figure--${tone}` : ""}${wide ? " figure--wide" : ""}`;
  return (
    <div className={`figure${tones}`} title={title}>
      <span className="figure__label">{label}</span>
      <span className="figure__value num">
        {value}
        {unit && <span className="figure__unit"> {unit}</span>}
      </span>
    </div>
  );
}

/** How many rows wait; a dash where nobody knows, and why on hover and for screen readers. */
export function WaitingFigure({ label, waits, tone }: { label: string; waits: Waiting; tone?: string }) {
  if (!waits.why) return <Figure label={label} value={count(waits.rows)} unit="rows" tone={tone} />;
  return (
    <Figure
      label={label}
      value={
        <>
          –<span className="visually-hidden">{waits.why}</span>
        </>
      }
      unit="not known"
      title={waits.why}
    />
  );
}

/**
 * A bar from 0 to 1 with its value in words for those who do not see it. `busy`: of what may be used up
 * without harm, such as CPU: what cannot keep up says so itself.
 */
export function Meter({
  ratio,
  label,
  busy = false,
}: {
  ratio: number | null | undefined;
  label: string;
  busy?: boolean;
}) {
  const share = Math.max(0, Math.min(1, ratio ?? 0));
  const tone = busy ? "calm" : share > 0.9 ? "failed" : share > 0.75 ? "lagging" : "calm";
  return (
    <span
      className={`meter meter--${tone}`}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}
    >
      <span className="meter__bar" style={{ transform: `scaleX(${share})` }} />
    </span>
  );
}
