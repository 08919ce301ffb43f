import { useEffect } from "react";
import { createRoot } from "react-dom/client";
import { Command } from "cmdk";
import {
  Activity,
  Cable,
  BellRing,
  Box,
  CircleUser,
  FileUp,
  Gauge,
  LayoutTemplate,
  Plus,
  Scale,
  LayoutDashboard,
  Server,
  SunMoon,
  TerminalSquare,
  Waypoints,
  Workflow,
} from "lucide-react";
import { editPage, livePage, templatePage } from "./address";
import { get } from "./api";
import { useCommands } from "./commands";
import { useLive } from "./live";
import { mayAct } from "./page";
import { matchScore } from "./synonyms";
import { toggleTheme } from "./theme";
import type { Template } from "./types";
import { createOpenState } from "./ui/open-state";
import { useLoaded } from "./ui/parts";
import "./ui/dialog.css";
import "./ui/ui.css";
import "./palette.css";

const { useOpen, open: openPalette, close, toggle } = createOpenState();
export { openPalette };

export function startPalette(): void {
  const place = document.createElement("div");
  document.body.append(place);
  createRoot(place).render(<CommandPalette />);
  window.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      toggle();
    }
  });
}

const go = (path: string) => () => window.location.assign(path);

function CommandPalette() {
  const open = useOpen();
  const before = open ? document.activeElement : null;
  useEffect(() => {
    if (!open) return;
    const focused = before instanceof HTMLElement ? before : null;
    return () => focused?.focus();
    // the element focused when it opened, and only then
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [open]);
  if (!open) return null;
  return (
    <>
      <div className="palette__scrim" onClick={close} aria-hidden="true" />
      <div
        className="palette"
        role="dialog"
        aria-modal="true"
        aria-label="Command palette"
        onKeyDown={(event) => event.key === "Escape" && close()}
      >
        <Command
          label="Command palette"
          loop
          filter={(value, search, known = []) => matchScore(value, known, search)}
        >
          <Command.Input autoFocus placeholder="Jump to a pipeline, element or node, or run a command" />
          <Command.List>
            <Command.Empty>Nothing matches. Try a shorter word.</Command.Empty>
            <OwnCommands />
            <Jumps />
            <Actions />
            <Templates />
            <Pages />
          </Command.List>
        </Command>
      </div>
    </>
  );
}

function Item({
  value,
  run,
  icon,
  children,
  disabled,
  keywords,
}: {
  value: string;
  run: () => void;
  icon: React.ReactNode;
  children: React.ReactNode;
  disabled?: boolean;
  keywords?: string[];
}) {
  const select = () => {
    close();
    // after the palette is gone, so that what runs may move the focus itself
    window.setTimeout(run);
  };
  return (
    <Command.Item value={value} keywords={keywords} onSelect={select} disabled={disabled}>
      {icon}
      {children}
    </Command.Item>
  );
}

function OwnCommands() {
  const commands = Object.values(useCommands()).flat();
  if (commands.length === 0) return null;
  return (
    <Command.Group heading="Here">
      {commands.map((command) => (
        <Item
          key={command.id}
          value={command.title}
          keywords={command.keywords}
          run={command.run}
          disabled={!!command.disabled}
          icon={<TerminalSquare aria-hidden="true" />}
        >
          <span className="spring">
            {command.title}
            {command.disabled && <span className="menu__note">{command.disabled}</span>}
          </span>
          {command.keys && <kbd className="kbd">{command.keys}</kbd>}
        </Item>
      ))}
    </Command.Group>
  );
}

function Jumps() {
  const pipelines = useLive((state) => state.pipelines);
  const nodes = useLive((state) => state.nodes);
  const elements = useLive((state) => state.elements);
  const titleOf = (pipeline: string) => pipelines.find(({ name }) => name === pipeline)?.title ?? pipeline;
  return (
    <>
      <Command.Group heading="Pipelines and elements">
        {pipelines.map(({ name, title, deployed_version }) => (
          <Item
            key={name}
            value={`${title} ${name}`}
            keywords={["pipeline"]}
            run={go(deployed_version === null ? editPage(name, null) : livePage(name))}
            icon={<Workflow aria-hidden="true" />}
          >
            {title}
          </Item>
        ))}
        {Object.entries(elements).flatMap(([pipeline, list]) =>
          list.map((element) => (
            <Item
              key={`${pipeline}/${element.id}`}
              value={`${element.title} ${element.id} ${titleOf(pipeline)} ${pipeline}`}
              keywords={["element", ...(element.type?.split("-") ?? [])]}
              run={go(livePage(pipeline, element.id))}
              icon={<Box aria-hidden="true" />}
            >
              {element.title || element.id} <span className="muted">{titleOf(pipeline)}</span>
            </Item>
          )),
        )}
      </Command.Group>
      <Command.Group heading="Nodes">
        {nodes.map(({ name }) => (
          <Item
            key={name}
            value={name}
            keywords={["node", "drain", "cordon"]}
            run={go(`/nodes/${encodeURIComponent(name)}`)}
            icon={<Server aria-hidden="true" />}
          >
            {name}
          </Item>
        ))}
      </Command.Group>
    </>
  );
}

/** What can be begun from any page. */
function Actions() {
  const may = mayAct("editor");
  const operates = mayAct("operator");
  return (
    <Command.Group heading="Actions">
      {may && (
        <Item value="New pipeline" run={go("/pipelines/?new=1")} icon={<Plus aria-hidden="true" />}>
          New pipeline
        </Item>
      )}
      {operates && (
        <Item value="New wall" run={go("/walls/?new=1")} icon={<Plus aria-hidden="true" />}>
          New wall
        </Item>
      )}
      {operates && (
        <Item value="New policy" run={go("/policies/?new=1")} icon={<Plus aria-hidden="true" />}>
          New policy
        </Item>
      )}
      {mayAct("admin") && (
        <Item value="Add a machine, a node" run={go("/nodes/?new=1")} icon={<Plus aria-hidden="true" />}>
          Add a machine
        </Item>
      )}
    </Command.Group>
  );
}

function Templates() {
  const { data = [] } = useLoaded("templates", (signal) => get<Template[]>("/templates", signal));
  return (
    <Command.Group heading="Templates">
      {data.map(({ name, title, description }) => (
        <Item
          key={name}
          value={`${title} ${name}`}
          keywords={["template", description]}
          run={go(templatePage(name))}
          icon={<LayoutTemplate aria-hidden="true" />}
        >
          {title} <span className="muted">template</span>
        </Item>
      ))}
    </Command.Group>
  );
}

function Pages() {
  return (
    <Command.Group heading="Pages">
      <Item value="Overview" run={go("/")} icon={<Gauge aria-hidden="true" />}>
        Overview
      </Item>
      <Item
        value="Alarms"
        keywords={["alert", "acknowledge", "silence", "rules", "channels", "messages", "on call"]}
        run={go("/alarms/")}
        icon={<BellRing aria-hidden="true" />}
      >
        Alarms
      </Item>
      <Item value="Pipelines" run={go("/pipelines/")} icon={<Workflow aria-hidden="true" />}>
        Pipelines
      </Item>
      <Item
        value="Templates"
        keywords={["gallery", "examples"]}
        run={go("/templates/")}
        icon={<LayoutTemplate aria-hidden="true" />}
      >
        Templates
      </Item>
      <Item
        value="Files"
        keywords={["uploads", "data", "import", "csv", "excel", "table", "Datei", "hochladen"]}
        run={go("/files/")}
        icon={<FileUp aria-hidden="true" />}
      >
        Files
      </Item>
      <Item
        value="Walls"
        keywords={["dashboard", "full screen", "monitor", "kiosk"]}
        run={go("/walls/")}
        icon={<LayoutDashboard aria-hidden="true" />}
      >
        Walls
      </Item>
      <Item value="Nodes" run={go("/nodes/")} icon={<Server aria-hidden="true" />}>
        Nodes
      </Item>
      <Item
        value="Map"
        keywords={["sites", "latency"]}
        run={go("/map/")}
        icon={<Waypoints aria-hidden="true" />}
      >
        Map
      </Item>
      <Item value="Connections" run={go("/connections/")} icon={<Cable aria-hidden="true" />}>
        Connections
      </Item>
      <Item value="Policies" run={go("/policies/")} icon={<Scale aria-hidden="true" />}>
        Policies
      </Item>
      <Item value="Events and audit" run={go("/events/")} icon={<Activity aria-hidden="true" />}>
        Events and audit
      </Item>
      <Item
        value="Your account: password, API tokens"
        run={go("/accounts/")}
        icon={<CircleUser aria-hidden="true" />}
      >
        Your account: password, API tokens
      </Item>
      {mayAct("admin") && (
        <Item
          value="All accounts: add a user, change a role"
          run={go("/accounts/#accounts-title")}
          icon={<CircleUser aria-hidden="true" />}
        >
          All accounts: add a user, change a role
        </Item>
      )}
      <Item
        value="Switch between light and dark"
        keywords={["theme"]}
        run={toggleTheme}
        icon={<SunMoon aria-hidden="true" />}
      >
        Switch between light and dark
      </Item>
    </Command.Group>
  );
}
