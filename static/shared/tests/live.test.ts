import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

/** A socket whose server is the test. */
class FakeSocket {
  static readonly CONNECTING = 0;
  static readonly OPEN = 1;
  static readonly CLOSED = 3;
  static opened: FakeSocket[] = [];

  readyState = FakeSocket.CONNECTING;
  sent: unknown[] = [];
  onopen?: () => void;
  onmessage?: (message: { data: string }) => void;
  onclose?: (event: { code: number }) => void;

  constructor() {
    FakeSocket.opened.push(this);
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  accept(): void {
    this.readyState = FakeSocket.OPEN;
    this.onopen?.();
  }

  tell(message: unknown): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  close(code = 1006): void {
    this.readyState = FakeSocket.CLOSED;
    this.onclose?.({ code });
  }
}

const SNAPSHOT = {
  type: "snapshot",
  n: 0,
  data: { nodes: [], pipelines: [], elements: {}, handovers: [], events: [] },
};

const newest = (): FakeSocket => {
  const socket = FakeSocket.opened.at(-1);
  if (!socket) throw new Error("no socket was opened");
  return socket;
};

/** Until the next socket is opened; ms. */
function waited(): number {
  const count = FakeSocket.opened.length;
  const since_ms = Date.now();
  while (FakeSocket.opened.length === count) {
    if (Date.now() - since_ms > 60_000) throw new Error("no socket was opened within a minute");
    vi.advanceTimersByTime(100);
  }
  return Date.now() - since_ms;
}

beforeEach(async () => {
  FakeSocket.opened = [];
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5); // no spread
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("window", {
    location: { protocol: "http:", host: "fogline" },
    addEventListener: vi.fn(),
    setInterval,
    setTimeout,
  });
  vi.stubGlobal("document", { addEventListener: vi.fn(), visibilityState: "visible" });
  vi.resetModules();
  const { live } = await import("../live");
  live.start();
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe("connecting again", () => {
  test("a server that accepts and closes at once is asked less and less often", () => {
    const waits = Array.from({ length: 7 }, () => {
      newest().accept();
      newest().close();
      return waited();
    });
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
  });

  test("after a message it begins anew", () => {
    for (let n = 0; n < 4; n += 1) {
      newest().accept();
      newest().close();
      waited();
    }
    newest().accept();
    newest().tell(SNAPSHOT);
    newest().close();
    expect(waited()).toBe(500);
  });

  test("a session that is over is not asked again", () => {
    newest().accept();
    newest().close(4401);
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.opened).toHaveLength(1);
  });
});
