type Load<T> = (signal: AbortSignal) => Promise<T>;

/** A slow service answers within half of this time. A connection that takes longer has died silently. */
const ANSWER_MS_MAX = 60_000;

/** Asks repeatedly, but one question at a time: it waits for a slow answer instead of asking again. */
export class Asker {
  private pending: AbortController | null = null;

  constructor(private readonly answerMsMax = ANSWER_MS_MAX) {}

  /** Asks now. An answer to an earlier question is ignored, and so is its failure. */
  ask<T>(load: Load<T>, take: (answer: T) => void, fail: (error: unknown) => void): void {
    this.stop();
    const question = new AbortController();
    this.pending = question;
    const over = (tell: () => void) => {
      if (this.pending !== question) return;
      this.pending = null;
      tell();
    };
    load(AbortSignal.any([question.signal, AbortSignal.timeout(this.answerMsMax)])).then(
      (answer) => over(() => take(answer)),
      (error: unknown) => over(() => fail(error)),
    );
  }

  /** Asks, unless an answer is still awaited. */
  again<T>(load: Load<T>, take: (answer: T) => void, fail: (error: unknown) => void): void {
    if (!this.pending) this.ask(load, take, fail);
  }

  stop(): void {
    this.pending?.abort();
    this.pending = null;
  }
}
