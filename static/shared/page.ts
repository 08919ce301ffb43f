import type { Role, User } from "./types";

/** What the Django template put on `#root`. */
interface PageProps {
  user: User;
  csrf: string;
  /** of the views that show one */
  pipeline?: string;
  mode?: "edit" | "live";
  element?: string;
  template?: string;
  node?: string;
  wall?: string;
  id?: string;
}

function read(): PageProps {
  const fallback: PageProps = { user: { username: "", role: "viewer" }, csrf: "" };
  if (typeof document === "undefined") return fallback;
  const text = document.getElementById("root")?.dataset.props;
  return text ? { ...fallback, ...(JSON.parse(text) as PageProps) } : fallback;
}

export const page = read();

const RANK: Record<Role, number> = { viewer: 0, operator: 1, editor: 2, admin: 3 };

export function mayAct(role: Role): boolean {
  return RANK[page.user.role] >= RANK[role];
}

/** Why a control that needs `role` is disabled; null when it is not. */
export function roleReason(role: Role): string | null {
  return mayAct(role) ? null : `Your role is ${page.user.role}; this needs ${role}. An admin can change it.`;
}
