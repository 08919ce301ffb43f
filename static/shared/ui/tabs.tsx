import { useRef, type ReactNode } from "react";
import * as RTabs from "@radix-ui/react-tabs";
import { ChevronDown } from "lucide-react";
import { Edges } from "./edges";
import { Menu } from "./menu";

export interface Tab {
  id: string;
  title: ReactNode;
  content: ReactNode;
  /** its name in the menu of tabs that are seldom opened; where there is little room it stands there */
  rare?: string;
}

interface Props {
  tabs: Tab[];
  value: string;
  onChange: (id: string) => void;
  label: string;
  /** whether there is little room: tabs that are seldom opened are in a menu, until one is chosen there */
  narrow?: boolean;
}

export function Tabs({ tabs, value, onChange, label, narrow = false }: Props) {
  const folded = narrow ? tabs.filter((tab) => tab.rare !== undefined && tab.id !== value) : [];
  const shown = tabs.filter((tab) => !folded.includes(tab));
  return (
    <RTabs.Root className="tabs" value={value} onValueChange={onChange}>
      <div className="tabs__row">
        <Edges className="tabs__edges">
          {(ref) => (
            <RTabs.List ref={ref} className="tabs__list" aria-label={label}>
              {shown.map((tab) => (
                <RTabs.Trigger
                  key={tab.id}
                  ref={tab.id === value ? showWhole : undefined}
                  value={tab.id}
                  className="tabs__tab"
                >
                  {tab.title}
                </RTabs.Trigger>
              ))}
            </RTabs.List>
          )}
        </Edges>
        {folded.length > 0 && <MoreTabs label={label} folded={folded} onChange={onChange} />}
      </div>
      {tabs.map((tab) => (
        <RTabs.Content key={tab.id} value={tab.id} className="tabs__content">
          {tab.content}
        </RTabs.Content>
      ))}
    </RTabs.Root>
  );
}

/** What is seen beside the chosen tab, at least: the padding of the list. */
const BESIDE_PX = 8;

/** Scrolls the chosen tab into the list's view, and nothing around the list. */
function showWhole(tab: HTMLElement | null): void {
  const list = tab?.parentElement;
  if (!tab || !list) return;
  const from = tab.offsetLeft - list.offsetLeft - BESIDE_PX;
  const to = from + tab.offsetWidth + 2 * BESIDE_PX;
  if (from < list.scrollLeft) list.scrollLeft = from;
  else if (to > list.scrollLeft + list.clientWidth) list.scrollLeft = to - list.clientWidth;
}

/** What is chosen here stands among the tabs then, and has the focus, so that the arrow keys go on from it. */
function MoreTabs({
  label,
  folded,
  onChange,
}: {
  label: string;
  folded: readonly Tab[];
  onChange: (id: string) => void;
}) {
  const chosen = useRef<string | null>(null);
  const choose = (id: string) => {
    chosen.current = id;
    onChange(id);
  };
  const focusAfter = () => {
    const id = chosen.current;
    chosen.current = null;
    return id === null
      ? null
      : document.querySelector<HTMLElement>(`[role="tab"][id$="-trigger-${CSS.escape(id)}"]`);
  };
  return (
    <Menu
      focusAfter={focusAfter}
      trigger={
        <button type="button" className="tabs__tab tabs__more" aria-label={`More ${label.toLowerCase()}`}>
          More
          <ChevronDown aria-hidden="true" />
        </button>
      }
      entries={folded.map(({ id, rare = id }) => ({ title: rare, run: () => choose(id) }))}
    />
  );
}
