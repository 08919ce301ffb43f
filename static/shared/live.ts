/** The one websocket of a page, and the store that its messages fill. */
import { create } from "zustand";
import type { Connection } from "./contact";
import { nameIn, nothing, reduce, type LiveData, type LiveMessage } from "./live-reducer";
import { runsInside } from "./points";
import type { ClusterNode, Handover, LiveElement } from "./types";

interface Followed extends LiveData, Connection {
  /** how many connections there were; after each new one, data that was requested separately may have gaps */
  snapshots: number;
}

export const useLive = create<Followed>(() => ({
  ...nothing,
  connected: false,
  heard: null,
  signedOut: false,
  snapshots: 0,
}));

/** The close code by which the server says that the session is over. */
const SIGNED_OUT = 4401;

const RETRY_MS = [500, 1000, 2000, 4000, 8000, 15_000];
/**
 * After this silence on an open socket we ask, so that "live" is never a guess. Without an answer for
 * ANSWER_MS the socket is dead: nothing tells a machine that slept or changed its network.
 */
const SILENCE_MS = 5000;
const ANSWER_MS = 10_000;
const PROBE_MS = 2000;
/** A busy server may need long for the first snapshot, and repeated questions do not make it faster. */
const FIRST_MS = 30_000;

class LiveClient {
  private socket: WebSocket | null = null;
  private attempt = 0;
  /** since when an answer of the server is due; null if it has sent something since we asked */
  private asked_ms: number | null = null;
  /** whether the server has said something on this socket */
  private spoken = false;
  private watch: { pipeline: string | null; nodes: boolean } = { pipeline: null, nodes: true };
  private started = false;

  start(): void {
    if (this.started) return;
    this.started = true;
    this.open();
    window.addEventListener("online", () => this.wake());
    // this does not close the connection: a server on this machine needs no network
    window.addEventListener("offline", () => this.wake());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.wake();
    });
    window.setInterval(() => this.probe(), PROBE_MS);
  }

  watchPipeline(pipeline: string | null): void {
    this.watch = { ...this.watch, pipeline };
    this.send({ watch: this.watch });
  }

  private open(): void {
    const scheme = window.location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${window.location.host}/ws/live`);
    this.socket = socket;
    this.asked_ms = Date.now();
    this.spoken = false;
    socket.onopen = () => {
      this.asked_ms = Date.now(); // for the snapshot, with which every connection begins
      useLive.setState({ connected: true, n: null });
      this.send({ watch: this.watch });
    };
    socket.onmessage = (message) => {
      // Not when it opens: a server, or a proxy before one that is away, may accept and close at once.
      this.attempt = 0;
      this.asked_ms = null;
      this.spoken = true;
      this.take(JSON.parse(message.data as string) as LiveMessage);
    };
    socket.onclose = ({ code }) => this.lost(socket, code);
  }

  private lost(socket: WebSocket, code: number): void {
    if (this.socket !== socket) return;
    this.asked_ms = null;
    useLive.setState({ connected: false, signedOut: code === SIGNED_OUT });
    if (code === SIGNED_OUT) return;
    const wait = RETRY_MS[Math.min(this.attempt, RETRY_MS.length - 1)] ?? 15_000;
    this.attempt += 1;
    // spread, so that a restarted server is not met by every browser at once
    window.setTimeout(() => this.socket === socket && this.open(), wait * (0.7 + Math.random() * 0.6));
  }

  /** The network has changed or somebody looks at the page again, so the connection is checked now. */
  wake(): void {
    const state = this.socket?.readyState;
    if (state === WebSocket.OPEN) this.ask();
    else if (state !== WebSocket.CONNECTING) {
      this.attempt = 0;
      this.open();
    }
  }

  private take(message: LiveMessage): void {
    const { state, resync } = reduce(useLive.getState(), message);
    const snapshots = useLive.getState().snapshots + (message.type === "snapshot" ? 1 : 0);
    useLive.setState({ ...state, heard: Date.now(), signedOut: false, snapshots });
    if (resync) this.send({ resync: true });
  }

  private probe(): void {
    if (this.asked_ms !== null) {
      if (Date.now() - this.asked_ms > (this.spoken ? ANSWER_MS : FIRST_MS)) this.giveUp();
    } else {
      const { connected, heard } = useLive.getState();
      if (connected && heard && Date.now() - heard > SILENCE_MS) this.ask();
    }
  }

  private ask(): void {
    this.asked_ms ??= Date.now();
    this.send({ resync: true });
  }

  /** Closing a dead socket may take very long, so nobody waits for its end. */
  private giveUp(): void {
    const { socket } = this;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.lost(socket, 1006);
  }

  private send(body: unknown): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(body));
  }
}

export const live = new LiveClient();

const NO_ELEMENTS: LiveElement[] = [];

export function useElements(pipeline: string): LiveElement[] {
  return useLive((state) => state.elements[pipeline] ?? NO_ELEMENTS);
}

const byId = new WeakMap<LiveElement[], Map<string, LiveElement>>();

/** Sorted by id once, for each card and each stream asks. */
function elementOf(elements: LiveElement[], id: string): LiveElement | undefined {
  let known = byId.get(elements);
  if (!known) byId.set(elements, (known = new Map(elements.map((element) => [element.id, element]))));
  return known.get(id);
}

/** Whether the element gets all its rows from elements that run as one with it. */
export function useRunsInside(pipeline: string, id: string, sources: readonly string[]): boolean {
  return useLive(({ elements }) => {
    const all = elements[pipeline] ?? NO_ELEMENTS;
    return runsInside(
      elementOf(all, id),
      sources.map((source) => elementOf(all, source)),
    );
  });
}

export function useElement(pipeline: string, id: string | null): LiveElement | undefined {
  return useLive(({ elements }) =>
    id === null ? undefined : elementOf(elements[pipeline] ?? NO_ELEMENTS, id),
  );
}

/** The name of an element, as far as this page knows it. */
export function useName(pipeline: string, id: string): string {
  return useLive((state) => nameIn(state.elements, pipeline, id));
}

/** What people call a pipeline; its name while this page does not know it. */
export function useTitle(pipeline: string): string {
  return useLive((state) => state.pipelines.find(({ name }) => name === pipeline)?.title ?? pipeline);
}

export function useNode(name: string): ClusterNode | undefined {
  return useLive((state) => state.nodes.find((node) => node.name === name));
}

export function useHandover(id: string | null | undefined): Handover | undefined {
  return useLive((state) => (id ? state.handovers.find((handover) => handover.id === id) : undefined));
}
