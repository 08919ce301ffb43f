/** Theme and rail state live in cookies, so that the server renders them and no page flashes. */
type Theme = "" | "light" | "dark";

const YEAR_S = 31_536_000;

function remember(name: string, value: string): void {
  document.cookie = `${name}=${value}; path=/; max-age=${YEAR_S}; samesite=lax`;
}

function recall(name: string): string {
  return document.cookie.match(new RegExp(`(?:^|; )${name}=([^;]*)`))?.[1] ?? "";
}

function currentTheme(): Theme {
  return recall("fogline-theme") as Theme;
}

function setTheme(theme: Theme): void {
  remember("fogline-theme", theme);
  document.documentElement.dataset.theme = theme;
  window.dispatchEvent(new Event("fogline:theme"));
}

export function isDark(): boolean {
  const theme = document.documentElement.dataset.theme;
  if (theme === "dark" || theme === "light") return theme === "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

export function toggleTheme(): void {
  setTheme(isDark() ? "light" : "dark");
}

export function applyStored(): void {
  document.documentElement.dataset.theme = currentTheme();
  document.documentElement.dataset.rail = recall("fogline-rail");
}

export function toggleRail(): void {
  const narrow = document.documentElement.dataset.rail !== "narrow";
  document.documentElement.dataset.rail = narrow ? "narrow" : "";
  remember("fogline-rail", narrow ? "narrow" : "");
}
