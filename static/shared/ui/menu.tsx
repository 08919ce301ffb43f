import type { ReactNode } from "react";
import * as RMenu from "@radix-ui/react-dropdown-menu";

interface MenuItem {
  title: string;
  icon?: ReactNode;
  danger?: boolean;
  /** Why it cannot be used now: shown under its title. */
  disabled?: string | null;
  run: () => void;
}

type MenuEntry = MenuItem | "line";

export function Menu({ trigger, entries }: { trigger: ReactNode; entries: MenuEntry[] }) {
  return (
    <RMenu.Root modal={false}>
      <RMenu.Trigger asChild>{trigger}</RMenu.Trigger>
      {/* within the page's main landmark, so that a user who goes from landmark to landmark finds it */}
      <RMenu.Portal container={document.getElementById("root")}>
        <RMenu.Content className="menu" align="start" sideOffset={4} collisionPadding={8}>
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
    </RMenu.Item>
  );
}
