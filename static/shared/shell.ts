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
  for (const link of document.querySelectorAll<HTMLElement>(".rail__link"))
    link.title ||= link.querySelector(".rail__word")?.textContent?.trim() ?? "";
}

/** As in shell.css: below it the rail lies over the page, and only while it is open. */
const PHONE = "(max-width: 640px)";

function wireMenu(): void {
  const button = part("menu");
  const rail = document.getElementById("rail");
  const main = document.getElementById("root");
  if (!button || !rail || !main) return;
  const isOpen = () => button.getAttribute("aria-expanded") === "true";
  const show = (open: boolean) => {
    button.setAttribute("aria-expanded", String(open));
    document.documentElement.toggleAttribute("data-menu", open);
    main.inert = open;
  };
  button.addEventListener("click", () => show(!isOpen()));
  document.addEventListener("click", ({ target }) => {
    if (isOpen() && target instanceof Node && !rail.contains(target) && !button.contains(target)) show(false);
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !isOpen()) return;
    show(false);
    button.focus();
  });
  window.matchMedia(PHONE).addEventListener("change", () => show(false));
  // with the browser's back button the page comes back as it was; at first, the page may
  // still be loading when somebody opens the menu
  window.addEventListener("pageshow", ({ persisted }) => persisted && show(false));
}

async function startApp(): Promise<void> {
  const { startPalette, openPalette } = await import("./palette");
  const { showLive } = await import("./live-indicator");
  startPalette();
  for (const button of document.querySelectorAll('[data-shell="search"]'))
    button.addEventListener("click", openPalette);
  const indicator = part("live");
  if (!indicator) return;
  showLive(indicator);
  const { notifyOfAlarms } = await import("./alarm-notices");
  notifyOfAlarms();
}

applyStored();
wireTheme();
wireCollapse();
nameLinks();
wireMenu();
if (document.getElementById("root")?.dataset.view) void startApp();
