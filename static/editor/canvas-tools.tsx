import { Panel, useReactFlow } from "@xyflow/react";
import { Keyboard, Layers, Maximize, Network, Redo2, Undo2, Ungroup, ZoomIn, ZoomOut } from "lucide-react";
import type { ReactNode } from "react";
import { Tip } from "../shared/ui/parts";
import { groupOf } from "../shared/document";
import { autoLayout, showKeyboardMap } from "./keyboard";
import { redo, toggleGroup, undo, useEditor } from "./store";
import { MOVE_MS, showAll } from "./view";

function Tool({
  label,
  keys,
  icon,
  run,
  disabled,
}: {
  label: string;
  keys?: string;
  icon: ReactNode;
  run: () => void;
  disabled?: boolean;
}) {
  return (
    <Tip
      text={
        <>
          {label}
          {keys && <span className="tip__keys"> {keys}</span>}
        </>
      }
      side="top"
    >
      <button
        type="button"
        className="button button--quiet button--icon"
        aria-label={label}
        aria-disabled={disabled}
        onClick={() => !disabled && run()}
      >
        {icon}
      </button>
    </Tip>
  );
}

export function CanvasTools({ editable }: { editable: boolean }) {
  const flow = useReactFlow();
  const canUndo = useEditor((state) => state.history.past.length > 0);
  const canRedo = useEditor((state) => state.history.future.length > 0);
  return (
    <Panel position="bottom-center" className="canvas-tools-place">
      <div className="canvas-tools" role="toolbar" aria-label="Canvas">
        {editable && (
          <>
            <Tool label="Undo" keys="Ctrl Z" icon={<Undo2 />} run={undo} disabled={!canUndo} />
            <Tool label="Redo" keys="Ctrl Y" icon={<Redo2 />} run={redo} disabled={!canRedo} />
            <span className="canvas-tools__line" />
            <GroupTool />
            <Tool label="Arrange" keys="L" icon={<Network />} run={() => autoLayout(flow)} />
            <span className="canvas-tools__line" />
          </>
        )}
        <Tool
          label="Zoom out"
          keys="-"
          icon={<ZoomOut />}
          run={() => void flow.zoomOut({ duration: MOVE_MS })}
        />
        <Tool
          label="Zoom in"
          keys="+"
          icon={<ZoomIn />}
          run={() => void flow.zoomIn({ duration: MOVE_MS })}
        />
        <Tool label="Zoom to fit" keys="F" icon={<Maximize />} run={() => showAll(flow)} />
        <span className="canvas-tools__line" />
        <Tool label="Keyboard map" keys="?" icon={<Keyboard />} run={showKeyboardMap} />
      </div>
    </Panel>
  );
}

function GroupTool() {
  const selected = useEditor((state) => state.selected);
  const grouped = useEditor((state) => [...state.selected].some((id) => groupOf(state.history.present, id)));
  if (grouped)
    return <Tool label="Run separately again" keys="Ctrl G" icon={<Ungroup />} run={toggleGroup} />;
  return (
    <Tool
      label={selected.size > 1 ? "Run as one" : "Run as one: select two or more elements first"}
      keys="Ctrl G"
      icon={<Layers />}
      run={toggleGroup}
      disabled={selected.size < 2}
    />
  );
}
