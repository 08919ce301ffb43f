/** What can be done with data files, by the REST API. */
import { del, get, post, request } from "../api";
import { roleReason } from "../page";
import { confirm } from "../ui/confirm";
import { toast, toastError } from "../ui/toast";
import type { FileDetail, Previewed, Reading, StoredFile } from "./types";
import { usersOf } from "./words";

const path = (id: string): string => `/files/${encodeURIComponent(id)}`;

export const listFiles = (signal?: AbortSignal) => get<StoredFile[]>("/files", signal);

export const fileOf = (id: string, signal?: AbortSignal) => get<FileDetail>(path(id), signal);

/** The first lines as a reading makes them, or as they are found around what is fixed. */
export const previewOf = (
  id: string,
  how: { reading: Reading } | { fixed: Readonly<Record<string, unknown>> },
  signal?: AbortSignal,
) => request<Previewed>("POST", `${path(id)}/preview`, { body: how, signal });

export const importFile = (id: string, reading: Reading | null, answers: Readonly<Record<string, number>>) =>
  post<FileDetail>(`${path(id)}/import`, { reading, answers });

/** Imports the same bytes in another way, as another file. */
export const importAgain = (id: string, reading: Reading) =>
  post<FileDetail>(`${path(id)}/again`, { reading });

export const cancelImport = (id: string) => post<FileDetail>(`${path(id)}/cancel`);

/** Asks, and deletes a file. Resolves to whether it is gone. */
export async function deleteFile(file: StoredFile): Promise<boolean> {
  const runs = file.uses.filter(({ where }) => where === "deployment");
  const others = file.uses.filter(({ where }) => where !== "deployment");
  const agreed = await confirm({
    title: `Delete ${file.name}?`,
    text: others.length
      ? `These name it and cannot be deployed without it: ${usersOf(others)}. Its original, its table and its report are deleted. This cannot be undone.`
      : "Nothing uses it. Its original, its table and its report are deleted. This cannot be undone; you can upload it again.",
    action: `Delete ${file.name}`,
    danger: true,
  });
  if (!agreed || runs.length) return false;
  try {
    await del(`${path(file.id)}${others.length ? "?force=true" : ""}`);
    toast({ tone: "done", title: `${file.name} is deleted` });
    return true;
  } catch (error) {
    toastError(`${file.name} was not deleted`, error);
    return false;
  }
}

/** Why a file cannot be deleted now; null when it can. */
export function deleteRefusal(file: StoredFile): string | null {
  const runs = file.uses.filter(({ where }) => where === "deployment");
  return (
    roleReason("editor") ??
    (runs.length ? `${usersOf(runs)}. Undeploy it first, or choose another file there.` : null)
  );
}
