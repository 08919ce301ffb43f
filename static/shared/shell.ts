/** Loaded by every page: styles, theme, rail, live indicator, command palette. */
import "./base.css";
import "./shell.css";
import "./buttons.css";
import "./surfaces.css";
import "./forms.css";
import { applyStored, isDark, toggleRail, toggleTheme } from "./theme";

function part(name: string): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[data-shell="${name}"]`);
}

function wireTheme(): void {
  const button = part("theme");
  const name = () =>
    button?.setAttribute("aria-label", isDark() ? "Use the light theme" : "Use the dark theme");
  name();
  button?.addEventListener("click", () => {
    toggleTheme();
    name();
  });
}

function wireCollapse(): void {
  const button = part("collapse");
  const name = () => {
    const narrow = document.documentElement.dataset.rail === "narrow";
    button?.setAttribute("aria-label", narrow ? "Expand the menu" : "Collapse the menu");
    button?.setAttribute("aria-expanded", String(!narrow));
  };
  name();
  button?.addEventListener("click", () => {
    toggleRail();
    name();
  });
}

/** A collapsed rail shows icons alone: their words become tooltips. */
function nameLinks(): void {
  for (const link of document.querySelectorAll<HTMLElement>(".rail__link")) {
    const word = link.querySelector(".rail__word")?.textContent?.trim();
    if (!word) continue;
    link.title = word;
    if (!link.hasAttribute("aria-label")) link.setAttribute("aria-label", word);
  }
}

async function startApp(): Promise<void> {
  const { startPalette, openPalette } = await import("./palette");
  const { showLive } = await import("./live-indicator");
  startPalette();
  part("search")?.addEventListener("click", openPalette);
  const indicator = part("live");
  if (indicator) showLive(indicator);
}

applyStored();
wireTheme();
wireCollapse();
nameLinks();
if (document.getElementById("root")?.dataset.view) void startApp();
