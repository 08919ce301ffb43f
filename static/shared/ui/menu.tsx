import type { ReactNode } from "react";
import * as RMenu from "@radix-ui/react-dropdown-menu";

export interface MenuItem {
  title: string;
  icon?: ReactNode;
  keys?: string;
  danger?: boolean;
  /** Why it cannot be used now: shown under its title. */
  disabled?: string | null;
  note?: string;
  run: () => void;
}

export type MenuEntry = MenuItem | "line" | { label: string };

export function Menu({
  trigger,
  entries,
  align = "end",
  label,
}: {
  trigger: ReactNode;
  entries: MenuEntry[];
  align?: "start" | "end";
  label?: string;
}) {
  return (
    <RMenu.Root modal={false}>
      <RMenu.Trigger asChild>{trigger}</RMenu.Trigger>
      <RMenu.Portal>
        <RMenu.Content className="menu" align={align} sideOffset={4} collisionPadding={8} aria-label={label}>
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
  if ("label" in entry) return <RMenu.Label className="menu__label">{entry.label}</RMenu.Label>;
  const note = entry.disabled || entry.note;
  return (
    <RMenu.Item
      className={`menu__item${entry.danger ? " menu__item--danger" : ""}`}
      disabled={!!entry.disabled}
      onSelect={entry.run}
    >
      {entry.icon && <span className="menu__icon">{entry.icon}</span>}
      <span className="menu__text">
        {entry.title}
        {note && <span className="menu__note">{note}</span>}
      </span>
      {entry.keys && <kbd className="kbd">{entry.keys}</kbd>}
    </RMenu.Item>
  );
}
