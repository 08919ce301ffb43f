import { useState, type ReactNode } from "react";
import * as RMenu from "@radix-ui/react-dropdown-menu";

interface MenuItem {
  title: string;
  icon?: ReactNode;
  /** the keys that do the same */
  keys?: string;
  danger?: boolean;
  /** Why it cannot be used now: shown under its title. */
  disabled?: string | null;
  run: () => void;
}

export type MenuEntry = MenuItem | "line";

interface MenuProps {
  trigger: ReactNode;
  entries: MenuEntry[];
  /** what has the focus when the menu has closed; null: its trigger */
  focusAfter?: () => HTMLElement | null;
}

export function Menu({ trigger, entries, focusAfter }: MenuProps) {
  const giveFocus = (event: Event) => {
    const next = focusAfter?.();
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  return (
    <RMenu.Root modal={false}>
      <RMenu.Trigger asChild>{trigger}</RMenu.Trigger>
      {/* within the page's main landmark, so that a user who goes from landmark to landmark finds it */}
      <RMenu.Portal container={document.getElementById("root")}>
        <RMenu.Content
          className="menu"
          align="start"
          sideOffset={4}
          collisionPadding={8}
          onCloseAutoFocus={giveFocus}
        >
          {entries.map((entry, index) => (
            <Entry key={index} entry={entry} />
          ))}
        </RMenu.Content>
      </RMenu.Portal>
    </RMenu.Root>
  );
}

interface PointMenuProps {
  /** what it is about, for screen readers */
  label: string;
  /** where it opens, in pixels of the window */
  at: { x: number; y: number };
  entries: MenuEntry[];
  onClose: () => void;
}

/** A menu that is open at a point. The focus goes back to what had it. */
export function PointMenu({ label, at, entries, onClose }: PointMenuProps) {
  const [before] = useState(() => document.activeElement);
  return (
    <RMenu.Root modal={false} open onOpenChange={(open) => !open && onClose()}>
      <RMenu.Trigger asChild>
        <span className="menu-point" style={{ left: at.x, top: at.y }} aria-hidden="true" tabIndex={-1} />
      </RMenu.Trigger>
      <RMenu.Portal container={document.getElementById("root")}>
        <RMenu.Content
          className="menu"
          align="start"
          // not under the pointer, whose button may still come up
          sideOffset={2}
          alignOffset={2}
          collisionPadding={8}
          aria-label={label}
          aria-labelledby={undefined}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            // what the chosen action focuses keeps the focus
            const lost = document.activeElement === document.body;
            if (lost && (before instanceof HTMLElement || before instanceof SVGElement)) before.focus();
          }}
        >
          {entries.map((entry, index) => (
            <Entry key={index} entry={entry} />
          ))}
        </RMenu.Content>
      </RMenu.Portal>
    </RMenu.Root>
  );
}

function Entry({ entry }: { entry: MenuEntry }) {
  if (entry === "line") return <RMenu.Separator className="menu__line" />;
  return (
    <RMenu.Item
      className={`menu__item${entry.danger ? " menu__item--danger" : ""}`}
      disabled={!!entry.disabled}
      onSelect={entry.run}
    >
      {entry.icon && <span className="menu__icon">{entry.icon}</span>}
      <span className="menu__text">
        {entry.title}
        {entry.disabled && <span className="menu__note">{entry.disabled}</span>}
      </span>
      {entry.keys && <kbd className="kbd">{entry.keys}</kbd>}
    </RMenu.Item>
  );
}
