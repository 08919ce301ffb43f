/**
 * Draws charts one after another, each with its newest figures, and pauses between them, so that a slow
 * machine still responds to its user.
 */
type Draw = () => unknown;

/** How many times as long a pause is as the drawing before it; at most PAUSE_MS_MAX. */
const PAUSE_SHARE = 2;
const PAUSE_MS_MAX = 2000;

export class DrawQueue {
  private readonly waiting = new Map<object, Draw>();
  /** of those that wait: no pause before them */
  private readonly urgent = new Set<object>();
  private running = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /**
   * Replaces the drawing that waits for `key`. `now`: draws without a pause, because somebody waits for
   * it.
   */
  add(key: object, draw: Draw, now = false): void {
    this.waiting.set(key, draw);
    if (now) this.urgent.add(key);
    if (!this.running && (now || this.timer === undefined)) this.soon(0);
  }

  private soon(pause_ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.next();
    }, pause_ms);
  }

  private async next(): Promise<void> {
    const [key] = this.urgent.size > 0 ? this.urgent : this.waiting.keys();
    const draw = key && this.waiting.get(key);
    if (!key || !draw) return;
    this.waiting.delete(key);
    this.urgent.delete(key);
    this.running = true;
    const began_ms = performance.now();
    try {
      await draw();
    } catch (error) {
      console.warn("A chart could not be drawn:", error);
    }
    this.running = false;
    const took_ms = performance.now() - began_ms;
    this.soon(this.urgent.size > 0 ? 0 : Math.min(PAUSE_MS_MAX, took_ms * PAUSE_SHARE));
  }
}

export const drawings = new DrawQueue();
