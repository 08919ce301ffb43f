import { beforeEach, expect, test, vi } from "vitest";
import { ApiError, post } from "../api";
import { page } from "../page";

const asked: string[] = [];
let me = { username: "ada", role: "editor", csrf: "new" };

async function answer(path: string, init: RequestInit): Promise<Response> {
  asked.push(`${init.method} ${path}`);
  if (path.endsWith("/me")) return new Response(JSON.stringify(me));
  if ((init.headers as Record<string, string>)["X-CSRFToken"] === me.csrf)
    return new Response(JSON.stringify({ done: true }));
  return new Response(JSON.stringify({ status: 403, code: "csrf", title: "Forbidden" }), { status: 403 });
}

beforeEach(() => {
  asked.length = 0;
  me = { username: "ada", role: "editor", csrf: "new" };
  page.user = { username: "ada", role: "editor" };
  page.csrf = "of the session before";
  vi.stubGlobal("fetch", answer);
});

test("after signing in again in another tab, this one goes on", async () => {
  expect(await post("/pause")).toEqual({ done: true });
  expect(asked).toEqual(["POST /api/v1/pause", "GET /api/v1/me", "POST /api/v1/pause"]);
  await post("/pause");
  expect(asked.length).toBe(4);
});

test("but not as somebody else", async () => {
  me.username = "bob";
  await expect(post("/pause")).rejects.toThrow(ApiError);
  expect(page.csrf).toBe("of the session before");
});
