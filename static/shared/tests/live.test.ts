import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

/** A socket whose server is the test. */
class FakeSocket {
  static readonly CONNECTING = 0;
  static readonly OPEN = 1;
  static readonly CLOSED = 3;
  static opened: FakeSocket[] = [];

  readyState = FakeSocket.CONNECTING;
  sent: unknown[] = [];
  onopen?: (() => void) | null;
  onmessage?: ((message: { data: string }) => void) | null;
  onclose?: ((event: { code: number }) => void) | null;

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
  data: {
    nodes: [],
    pipelines: [],
    elements: {},
    handovers: [],
    moves: [],
    operations: [],
    events: [],
    alarms: [],
  },
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

const listeners = new Map<string, () => void>();

beforeEach(async () => {
  FakeSocket.opened = [];
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5); // no spread
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("window", {
    location: { protocol: "http:", host: "fogline" },
    addEventListener: (name: string, listener: () => void) => listeners.set(name, listener),
    setInterval,
    setTimeout,
  });
  vi.stubGlobal("document", {
    addEventListener: (name: string, listener: () => void) => listeners.set(name, listener),
    visibilityState: "visible",
  });
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

  test("after a message it starts again", () => {
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

  test("who has signed in again elsewhere is told so with the first message", async () => {
    const { useLive } = await import("../live");
    newest().accept();
    newest().close(4401);
    expect(useLive.getState().signedOut).toBe(true);
    listeners.get("visibilitychange")?.();
    newest().accept();
    expect(useLive.getState().signedOut, "a server accepts before it closes").toBe(true);
    newest().tell(SNAPSHOT);
    expect(useLive.getState().signedOut).toBe(false);
  });
});

describe("a connection that died without a word", () => {
  const RESYNC = { resync: true };
  const asked = () => newest().sent.filter((body) => JSON.stringify(body) === JSON.stringify(RESYNC)).length;

  test("a server that is silent is asked, and one that answers keeps its socket", () => {
    newest().accept();
    newest().tell(SNAPSHOT);
    for (let n = 1; n <= 5; n += 1) {
      vi.advanceTimersByTime(14_000);
      expect(asked()).toBe(n);
      newest().tell(SNAPSHOT);
    }
    expect(FakeSocket.opened).toHaveLength(1);
  });

  test("one that does not answer is replaced, and what it still says is not taken", async () => {
    const { useLive } = await import("../live");
    newest().accept();
    newest().tell(SNAPSHOT);
    const dead = newest();
    dead.close = () => undefined; // its end is not told
    expect(waited()).toBeLessThan(27_000);
    expect(useLive.getState().connected).toBe(false);
    newest().accept();
    dead.tell({ ...SNAPSHOT, n: 7 });
    expect(useLive.getState()).toMatchObject({ connected: true, n: null });
    newest().tell(SNAPSHOT);
    vi.advanceTimersByTime(5000);
    expect(FakeSocket.opened).toHaveLength(2);
  });

  test("one that opens and never sends a snapshot is replaced, less and less often", () => {
    const waits = Array.from({ length: 6 }, () => {
      newest().accept();
      return waited();
    });
    expect(waits[0]).toBeLessThan(34_000);
    expect(waits[5]).toBeGreaterThan(40_000);
  });

  test("one that never opens is replaced", () => {
    expect(waited()).toBeLessThan(35_000);
  });

  test("when the network is back the server is asked at once", () => {
    newest().accept();
    newest().tell(SNAPSHOT);
    listeners.get("online")?.();
    expect(asked()).toBe(1);
    expect(waited()).toBeLessThan(14_000);
  });

  test("a page that is looked at again connects at once, whatever the wait", () => {
    for (let n = 0; n < 5; n += 1) {
      newest().accept();
      newest().close();
      if (n < 4) waited();
    }
    listeners.get("visibilitychange")?.();
    expect(FakeSocket.opened).toHaveLength(6);
  });
});
