import { create } from "zustand";
import { page } from "./page";
import type { Problem, User } from "./types";

const PREFIX = "/api/v1";

/** The secret of a link, with which each request is made in place of a session. */
let link: string | null = null;

export function askByLink(secret: string): void {
  link = secret;
}

/** A request that failed: `problem` is what the server said, or what we can say when it said nothing. */
export class ApiError extends Error {
  constructor(public readonly problem: Problem) {
    super(problem.detail || problem.title);
  }

  get status(): number {
    return this.problem.status;
  }
}

/** Whether the server said last that nobody is signed in here any more. */
export const useSession = create<{ over: boolean }>(() => ({ over: false }));

function noteSession(over: boolean): void {
  if (useSession.getState().over !== over) useSession.setState({ over });
}

interface RequestOptions {
  body?: unknown;
  form?: FormData;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  keepalive?: boolean;
}

/** JSON request to the REST API; throws ApiError (status 0: the server could not be reached). */
export const request = <T>(method: string, path: string, options: RequestOptions = {}): Promise<T> =>
  withToken(() => send<T>(method, path, options));

async function withToken<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ApiError) || error.problem.code !== "csrf") throw error;
    // the user signed in again in another tab, so this tab's token belongs to the earlier session
    const { csrf, ...user } = await send<User & { csrf: string }>("GET", "/me", {});
    if (user.username !== page.user.username) throw error; // another user signed in: the page must be reloaded
    page.csrf = csrf;
    return run();
  }
}

/**
 * Sends a form whose files may be large; `told` hears how much of it has left. Throws ApiError, or an
 * AbortError when `signal` ends it.
 */
export const upload = <T>(
  path: string,
  form: FormData,
  told: (sent: number, total: number) => void,
  signal: AbortSignal,
): Promise<T> => withToken(() => sendForm<T>(path, form, told, signal));

/** By XMLHttpRequest: `fetch` does not say how much of a request was sent. */
function sendForm<T>(
  path: string,
  form: FormData,
  told: (sent: number, total: number) => void,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const asked = new XMLHttpRequest();
    const aborted = () => reject(new DOMException("The upload was cancelled.", "AbortError"));
    asked.open("POST", PREFIX + path);
    asked.setRequestHeader("Accept", "application/json");
    asked.setRequestHeader("X-CSRFToken", page.csrf);
    asked.upload.onprogress = ({ loaded, total }) => told(loaded, total);
    asked.onabort = aborted;
    asked.onerror = () => reject(new ApiError(unreachable()));
    asked.onload = () => {
      const body = parse(asked.responseText);
      if (asked.status >= 200 && asked.status < 300) resolve(body as T);
      else reject(new ApiError(problemOf(asked, body)));
    };
    if (signal.aborted) return aborted();
    signal.addEventListener("abort", () => asked.abort(), { once: true });
    asked.send(form);
  });
}

async function send<T>(method: string, path: string, options: RequestOptions): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  if (link !== null) headers.Authorization = `Bearer ${link}`;
  else if (method !== "GET") headers["X-CSRFToken"] = page.csrf;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  let text: string;
  try {
    response = await fetch(PREFIX + path, {
      method,
      headers,
      body: options.form ?? (options.body === undefined ? undefined : JSON.stringify(options.body)),
      signal: options.signal,
      credentials: link === null ? "same-origin" : "omit",
      keepalive: options.keepalive,
    });
    text = await response.text();
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw new ApiError(unreachable());
  }
  const body = parse(text);
  noteSession(response.status === 401);
  if (!response.ok) throw new ApiError(problemOf(response, body));
  return body as T;
}

function parse(text: string): unknown {
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function unreachable(): Problem {
  return {
    title: "The server cannot be reached",
    status: 0,
    detail: "The dashboard's server did not answer.",
    safe: "Running pipelines do not need it and keep running.",
    next: "Check your connection. The page tries again automatically.",
  };
}

function problemOf(response: { status: number; statusText: string }, body: unknown): Problem {
  if (body && typeof body === "object") {
    const problem = body as Problem;
    const detail = typeof problem.detail === "string" ? problem.detail : JSON.stringify(problem.detail ?? "");
    return { ...problem, title: problem.title ?? response.statusText, detail, status: response.status };
  }
  if (response.status === 401) {
    return {
      title: "You are signed out",
      status: 401,
      detail: "Sign in again. Your draft is kept in this browser.",
    };
  }
  return { title: response.statusText || `HTTP ${response.status}`, status: response.status };
}

export const get = <T>(path: string, signal?: AbortSignal) => request<T>("GET", path, { signal });
export const post = <T>(path: string, body?: unknown, signal?: AbortSignal) =>
  request<T>("POST", path, { body: body ?? {}, signal });
export const put = <T>(path: string, body: unknown) => request<T>("PUT", path, { body });
export const patch = <T>(path: string, body: unknown) => request<T>("PATCH", path, { body });
export const del = <T>(path: string) => request<T>("DELETE", path);

export function problemText(error: unknown): string {
  if (error instanceof ApiError) {
    const { detail, title, safe, next } = error.problem;
    return [detail || title, safe, next].filter(Boolean).join(" ");
  }
  return error instanceof Error ? error.message : String(error);
}

/** The code of a refusal, which has a page. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof ApiError ? error.problem.code : undefined;

export const elementPath = (pipeline: string, element: string) =>
  `/pipelines/${encodeURIComponent(pipeline)}/elements/${encodeURIComponent(element)}`;
