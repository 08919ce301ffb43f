import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import {
  Background,
  BackgroundVariant,
  ConnectionLineType,
  MiniMap,
  Panel,
  ReactFlow,
  useConnection,
  useReactFlow,
  type Connection,
  type Edge,
  type EdgeChange,
  type FinalConnectionState,
  type IsValidConnection,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { mayAct } from "../shared/page";
import { toast } from "../shared/ui/toast";
import { CanvasTools } from "./canvas-tools";
import { ElementCard, GroupBox } from "./card";
import { judge } from "./connect";
import { connect, disconnect, freePlace, type PortRef } from "./document";
import { CARD, FIT, type FlowNode } from "./flow";
import { DRAG_TYPE } from "./palette";
import { QuickAdd } from "./quick-add";
import { StreamEdge } from "./stream-edge";
import { addElement, commit, current, select, takeNodeChanges, useEditor } from "./store";

const NODE_TYPES = { card: ElementCard, "group-box": GroupBox };
const EDGE_TYPES = { stream: StreamEdge };
/** From here on, cards outside the view are not drawn. */
const MANY = 120;

export interface Pending {
  from: PortRef;
  at: { x: number; y: number };
  screen: { x: number; y: number };
}

const ends = (connection: Connection | Edge): [PortRef, PortRef] => [
  { element: connection.source, port: connection.sourceHandle ?? "out" },
  { element: connection.target, port: connection.targetHandle ?? "in" },
];

function verdictOf(connection: Connection | Edge) {
  const { operators, schemas } = useEditor.getState();
  return judge(current(), operators, ...ends(connection), schemas);
}

const isValidConnection: IsValidConnection = (connection) => verdictOf(connection).ok;

/** `instead`: the stream whose end was drawn elsewhere. */
function takeConnection(connection: Connection, instead?: Edge): void {
  const verdict = verdictOf(connection);
  if (!verdict.ok) return;
  const document = instead ? disconnect(current(), ends(instead)[1]) : current();
  commit(connect(document, ...ends(connection)));
  if (instead?.target === connection.target && instead.targetHandle === connection.targetHandle) return;
  if (verdict.replaces) {
    toast({
      tone: "info",
      title: `Replaced the stream from ${verdict.replaces}`,
      text: "An input takes one stream. Ctrl Z brings it back.",
    });
  }
}

function takeEdgeChanges(changes: EdgeChange[]): void {
  const selections = changes.filter((change) => change.type === "select");
  if (selections.length === 0) return;
  const { selected, selectedEdges } = useEditor.getState();
  const next = new Set(selectedEdges);
  for (const { id, selected: on } of selections) {
    if (on) next.add(id);
    else next.delete(id);
  }
  select(selected, next);
}

export function Canvas({ onOpen }: { onOpen: () => void }) {
  const nodes = useEditor((state) => state.nodes);
  const edges = useEditor((state) => state.edges);
  const mode = useEditor((state) => state.mode);
  const editable = mode === "edit" && mayAct("editor");
  const flow = useReactFlow<FlowNode>();
  const [pending, setPending] = useState<Pending | null>(null);
  const drop = useDrop(editable);
  const first = useRef(true);

  useEffect(() => {
    if (!first.current) return;
    first.current = false;
    // on an empty canvas the first element stays where it is dropped
    if (nodes.length > 0) window.setTimeout(() => void flow.fitView({ ...FIT, duration: 0 }), 30);
  }, [flow, nodes.length]);

  const connectEnd = useCallback(
    (event: MouseEvent | TouchEvent, state: FinalConnectionState) => {
      if (!state.fromHandle || !state.fromNode) return;
      const from = { element: state.fromNode.id, port: state.fromHandle.id ?? "out" };
      if (state.toHandle && state.isValid === false) {
        const to = { element: state.toHandle.nodeId, port: state.toHandle.id ?? "in" };
        const reason = refusal(from, state.fromHandle.type, to, state.toHandle.type);
        toast({ tone: "info", title: "Not connected", text: reason });
      } else if (!state.toHandle && state.fromHandle.type === "source" && "clientX" in event) {
        const screen = { x: event.clientX, y: event.clientY };
        setPending({ from, screen, at: flow.screenToFlowPosition(screen) });
      }
    },
    [flow],
  );

  return (
    <div className="canvas" {...drop} data-mode={mode}>
      <ReactFlow<FlowNode>
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodesChange={takeNodeChanges}
        onEdgesChange={takeEdgeChanges}
        onConnect={(connection) => takeConnection(connection)}
        onConnectEnd={connectEnd}
        onReconnect={(edge, connection) => takeConnection(connection, edge)}
        isValidConnection={isValidConnection}
        onNodeDoubleClick={onOpen}
        onPaneClick={() => setPending(null)}
        nodesDraggable={editable}
        nodesConnectable={editable}
        elementsSelectable
        deleteKeyCode={null}
        multiSelectionKeyCode={["Shift", "Control", "Meta"]}
        selectionKeyCode="Shift"
        panOnScroll={false}
        minZoom={0.15}
        maxZoom={2}
        connectionRadius={36}
        connectionLineType={ConnectionLineType.Bezier}
        snapToGrid
        snapGrid={[8, 8]}
        onlyRenderVisibleElements={nodes.length > MANY}
        proOptions={{ hideAttribution: true }}
        aria-label="Pipeline canvas"
      >
        <Background variant={BackgroundVariant.Dots} gap={24} size={1.4} />
        <MiniMap
          pannable
          zoomable
          ariaLabel="Map of the pipeline"
          nodeBorderRadius={10}
          nodeClassName={(node) => (node.type === "card" ? "map-card" : "map-group")}
        />
        <CanvasTools editable={editable} />
        <RefusalHint />
      </ReactFlow>
      {pending && <QuickAdd pending={pending} onClose={() => setPending(null)} />}
    </div>
  );
}

function refusal(from: PortRef, fromType: string, to: PortRef, toType: string): string {
  if (fromType === toType)
    return fromType === "source"
      ? "Both are outputs. Draw from an output to an input."
      : "Both are inputs. Draw from an output to an input.";
  const { operators, schemas } = useEditor.getState();
  const verdict =
    fromType === "source"
      ? judge(current(), operators, from, to, schemas)
      : judge(current(), operators, to, from, schemas);
  return verdict.ok ? "" : verdict.reason;
}

/** While a connection hovers over a port that does not take it: why. */
function RefusalHint() {
  const reason = useConnection((connection) => {
    if (!connection.inProgress || !connection.toHandle || connection.isValid !== false) return "";
    const from = { element: connection.fromNode.id, port: connection.fromHandle.id ?? "out" };
    const to = { element: connection.toHandle.nodeId, port: connection.toHandle.id ?? "in" };
    return refusal(from, connection.fromHandle.type, to, connection.toHandle.type);
  });
  if (!reason) return null;
  return (
    <Panel position="bottom-center">
      <div className="hint" role="status">
        {reason}
      </div>
    </Panel>
  );
}

/** Dropping a palette element onto the canvas. */
function useDrop(editable: boolean) {
  const flow = useReactFlow();
  return useMemo(
    () => ({
      onDragOver: (event: React.DragEvent) => {
        if (!editable || !event.dataTransfer.types.includes(DRAG_TYPE)) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = "copy";
      },
      onDrop: (event: React.DragEvent) => {
        const type = event.dataTransfer.getData(DRAG_TYPE);
        if (!type) return;
        event.preventDefault();
        const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
        addElement(type, { x: at.x - CARD.width / 2, y: at.y - 32 });
      },
    }),
    [editable, flow],
  );
}

/** Where an element that is added without a pointer goes: right of the selected one, else in the view's middle. */
export function useAddByKey(): (type: string) => string | null {
  const flow = useReactFlow();
  return useCallback(
    (type) => {
      const { selected, nodes } = useEditor.getState();
      const chosen = selected.size === 1 ? nodes.find((node) => selected.has(node.id)) : undefined;
      const middle = () => {
        const box = document.querySelector(".canvas")?.getBoundingClientRect() ?? new DOMRect(0, 0, 800, 600);
        const at = flow.screenToFlowPosition({ x: box.x + box.width / 2, y: box.y + box.height / 2 });
        return { x: at.x - CARD.width / 2, y: at.y - CARD.height / 2 };
      };
      const wanted = chosen ? { x: chosen.position.x + CARD.width + 88, y: chosen.position.y } : middle();
      const id = addElement(type, freePlace(current(), wanted));
      if (id) window.setTimeout(() => reveal(flow, id), 60);
      return id;
    },
    [flow],
  );
}

/** Room that a revealed card keeps to the canvas' edges; below, the tools float. */
const ROOM = { side: 24, bottom: 88 };

/** Bring a card into view if it is not, by the shortest way: what else is seen hardly moves. */
export function reveal(flow: ReturnType<typeof useReactFlow>, id: string): void {
  const node = flow.getNode(id);
  const box = document.querySelector(".canvas")?.getBoundingClientRect();
  if (!node || !box) return;
  const corner = flow.flowToScreenPosition(node.position);
  const { x, y, zoom } = flow.getViewport();
  const right = box.right - ROOM.side - CARD.width * zoom;
  const bottom = box.bottom - ROOM.bottom - CARD.height * zoom;
  const dx = Math.max(Math.min(corner.x, right), box.left + ROOM.side) - corner.x;
  const dy = Math.max(Math.min(corner.y, bottom), box.top + ROOM.side) - corner.y;
  if (dx || dy) void flow.setViewport({ x: x + dx, y: y + dy, zoom }, { duration: FIT.duration });
}
