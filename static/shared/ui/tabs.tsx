import type { ReactNode } from "react";
import * as RTabs from "@radix-ui/react-tabs";

export interface Tab {
  id: string;
  title: ReactNode;
  content: ReactNode;
}

export function Tabs({
  tabs,
  value,
  onChange,
  label,
}: {
  tabs: Tab[];
  value: string;
  onChange: (id: string) => void;
  label: string;
}) {
  return (
    <RTabs.Root className="tabs" value={value} onValueChange={onChange}>
      <RTabs.List className="tabs__list" aria-label={label}>
        {tabs.map((tab) => (
          <RTabs.Trigger key={tab.id} value={tab.id} className="tabs__tab">
            {tab.title}
          </RTabs.Trigger>
        ))}
      </RTabs.List>
      {tabs.map((tab) => (
        <RTabs.Content key={tab.id} value={tab.id} className="tabs__content">
          {tab.content}
        </RTabs.Content>
      ))}
    </RTabs.Root>
  );
}
