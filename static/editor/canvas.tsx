import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import {
  Background,
  BackgroundVariant,
  ConnectionLineType,
  MiniMap,
  Panel,
  ReactFlow,
  useConnection,
  useReactFlow,
  useStore,
  type Connection,
  type Edge,
  type EdgeChange,
  type FinalConnectionState,
  type IsValidConnection,
  type NodeChange,
  type Viewport,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { toast } from "../shared/ui/toast";
import { CanvasTools } from "./canvas-tools";
import { ContextMenu, openMenu } from "./context-menu";
import { ElementCard, GroupBox } from "./card";
import type { Mend } from "./columns";
import { judge } from "./connect";
import { parseReference, streamName, type PortRef } from "../shared/document";
import type { PipelineDocument } from "../shared/types";
import { connect, disconnect } from "./edits";
import type { FlowNode, StreamEdge as StreamLine } from "./flow";
import { pinned } from "./lanes/dropping";
import { useArranged, type AnyNode, type Arranged } from "./lanes/arranged";
import { FrameBox, GhostCard, LaneBox } from "./lanes/boxes";
import { LaneCard, LaneStream, LinesContext, Threads } from "./lanes/drawn";
import { draftLaneAt } from "./lanes/lies";
import { useLines } from "./lanes/lines";
import { ArrangementSwitch, LanePanels } from "./lanes/panels";
import { laneLayoutNow } from "./lanes/store";
import "./lanes/lanes.css";
import { Notes } from "./notes/layer";
import { PassingHint } from "./passing/hint";
import { DRAG_TYPE } from "./palette";
import { CARD, type Point } from "./places";
import { chooseTaker, QuickAdd } from "./quick-add";
import { tellRefusal } from "./refusal";
import { PlainStreams, StreamEdge } from "./stream-edge";
import {
  addElement,
  commit,
  current,
  isEditable,
  select,
  startRenaming,
  takeNodeChanges,
  useEditor,
  type Join,
} from "./store";
import { addForFile } from "./uploading";
import { allSeen, letterScale, LookContext, lookAt, placesOf, readableView, ZOOM, type Look } from "./view";

const NODE_TYPES = { card: ElementCard, "group-box": GroupBox, "note-place": () => null };
const EDGE_TYPES = { stream: StreamEdge };
const LANE_NODE_TYPES = {
  card: LaneCard,
  "group-box": GroupBox,
  lane: LaneBox,
  frame: FrameBox,
  ghost: GhostCard,
};
const LANE_EDGE_TYPES = { stream: LaneStream };
/** From here on, cards outside the view are not drawn, and from afar neither ports nor single streams. */
const MANY = 120;
const NO_STREAMS: StreamLine[] = [];
const ADD_KEYS = ["Shift", "Control", "Meta"];
const SNAP: [number, number] = [8, 8];
/** The same functions each time: React Flow draws every card again when it is given another one. */
const MENUS = {
  card: (event: React.MouseEvent, node: AnyNode) => openMenu(event, "card", node),
  selection: (event: React.MouseEvent, [node]: AnyNode[]) => node && openMenu(event, "card", node),
  stream: (event: React.MouseEvent, edge: StreamLine) => openMenu(event, "stream", edge),
  canvas: (event: React.MouseEvent | MouseEvent) => openMenu(event, "canvas"),
};
const MAP_CLASSES: Partial<Record<string, string>> = { card: "map-card", "note-place": "map-note" };
const mapClass = (node: AnyNode) => MAP_CLASSES[node.type] ?? "map-group";

const ends = (connection: Connection | Edge): [PortRef, PortRef] => [
  { element: connection.source, port: connection.sourceHandle ?? "out" },
  { element: connection.target, port: connection.targetHandle ?? "in" },
];

function verdictOf(connection: Connection | Edge) {
  const { operators, schemas } = useEditor.getState();
  return judge(current(), operators, ...ends(connection), schemas);
}

const isValidConnection: IsValidConnection = (connection) => verdictOf(connection).ok;

/** `instead`: the stream whose end was moved to another port. */
function takeConnection(connection: Connection, instead?: Edge): void {
  const verdict = verdictOf(connection);
  if (!verdict.ok) return;
  const document = instead ? disconnect(current(), ends(instead)[1]) : current();
  commit(connect(document, ...ends(connection)));
  if (instead?.target === connection.target && instead.targetHandle === connection.targetHandle) return;
  if (verdict.replaces) {
    toast({
      tone: "info",
      title: `Replaced the stream from ${streamName(current(), useEditor.getState().operators, parseReference(verdict.replaces))}`,
      text: "An input takes only one stream. Ctrl Z brings the old one back.",
    });
  }
}

const takeNewConnection = (connection: Connection): void => takeConnection(connection);
const takeMovedConnection = (edge: Edge, connection: Connection): void => takeConnection(connection, edge);
const takeOwnChanges = (changes: NodeChange<AnyNode>[]): void =>
  takeNodeChanges(changes as NodeChange<FlowNode>[]);

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

/** React Flow leaves several selected when one of them is clicked, and Delete would then remove them all. */
function takeClick(event: React.MouseEvent, node: AnyNode): void {
  const adds = event.shiftKey || event.ctrlKey || event.metaKey;
  if (!adds && useEditor.getState().selected.size > 1) select([node.id]);
}

/** The first view of the canvas; null while the size of the canvas is not known. */
function useFirstView(place: React.RefObject<HTMLDivElement | null>): Viewport | null {
  const [view, setView] = useState<Viewport | null>(null);
  useLayoutEffect(() => {
    if (!place.current) return;
    setView(
      readableView(useEditor.getState().nodes.flatMap(placesOf), place.current.getBoundingClientRect()),
    );
  }, [place]);
  return view;
}

export function Canvas({ onOpen }: { onOpen: () => void }) {
  const mode = useEditor((state) => state.mode);
  const editable = useEditor(isEditable);
  const drop = useDrop(editable);
  const place = useRef<HTMLDivElement>(null);
  const view = useFirstView(place);
  const look = useStore((state) => lookAt(state.transform[2]));
  const letters = useStore((state) => letterScale(state.transform[2]));
  const style = { "--letters": letters } as React.CSSProperties;
  return (
    <div ref={place} className="canvas" style={style} {...drop} data-mode={mode} data-look={look}>
      {view && <Drawing view={view} editable={editable} look={look} onOpen={onOpen} />}
      <QuickAdd />
      <ContextMenu editable={editable} />
    </div>
  );
}

function useConnectEnd() {
  const flow = useReactFlow();
  return useCallback(
    (event: MouseEvent | TouchEvent, state: FinalConnectionState) => {
      if (!state.fromHandle || !state.fromNode) return;
      const from = { element: state.fromNode.id, port: state.fromHandle.id ?? "out" };
      if (state.toHandle && state.isValid === false) {
        const to = { element: state.toHandle.nodeId, port: state.toHandle.id ?? "in" };
        const { reason, mends } = refusal(from, state.fromHandle.type, to, state.toHandle.type);
        tellRefusal(reason, mends);
      } else if (!state.toHandle && state.fromHandle.type === "source" && "clientX" in event) {
        const screen = { x: event.clientX, y: event.clientY };
        chooseTaker(from, flow.screenToFlowPosition(screen), screen);
      }
    },
    [flow],
  );
}

/** Whether `on` has ended, but has not been drawn so yet. */
function useJustEnded(on: boolean): boolean {
  const [drawn, setDrawn] = useState(on);
  useEffect(() => {
    let frame = requestAnimationFrame(() => (frame = requestAnimationFrame(() => setDrawn(on))));
    return () => cancelAnimationFrame(frame);
  }, [on]);
  return drawn && !on;
}

function Drawing({
  view,
  editable,
  look,
  onOpen,
}: {
  view: Viewport;
  editable: boolean;
  look: Look;
  onOpen: () => void;
}) {
  const nodes = useEditor((state) => state.nodes);
  const edges = useEditor((state) => state.edges);
  const connectEnd = useConnectEnd();
  const many = nodes.length > MANY;
  const simple = look !== "whole";
  const bare = simple && many;
  const far = look === "dot";
  const cards = useMemo(() => ({ simple, bare, far }), [simple, bare, far]);
  const arranged = useArranged(nodes, bare);
  const lines = useLines(arranged !== null);
  const still = useJustEnded(arranged !== null && bare);
  return (
    <LookContext value={cards}>
      <LinesContext value={lines}>
        <ReactFlow<AnyNode, StreamLine>
          className={still ? "still" : undefined}
          nodes={nodes}
          edges={bare ? NO_STREAMS : edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          onNodesChange={takeOwnChanges}
          {...(arranged ? inLanes(arranged) : AS_DRAWN)}
          onEdgesChange={takeEdgeChanges}
          onConnect={takeNewConnection}
          onConnectEnd={connectEnd}
          onReconnect={takeMovedConnection}
          isValidConnection={isValidConnection}
          onNodeClick={takeClick}
          onNodeContextMenu={MENUS.card}
          onSelectionContextMenu={MENUS.selection}
          onEdgeContextMenu={MENUS.stream}
          onPaneContextMenu={MENUS.canvas}
          onNodeDoubleClick={editable ? startRenaming : onOpen}
          nodesDraggable={editable}
          nodesConnectable={editable}
          elementsSelectable
          deleteKeyCode={null}
          multiSelectionKeyCode={ADD_KEYS}
          selectionKeyCode="Shift"
          panOnScroll={false}
          defaultViewport={view}
          minZoom={ZOOM.least}
          maxZoom={ZOOM.most}
          connectionRadius={36}
          connectionLineType={ConnectionLineType.Bezier}
          snapToGrid={!arranged}
          snapGrid={SNAP}
          onlyRenderVisibleElements={many}
          proOptions={{ hideAttribution: true }}
          aria-label="Pipeline canvas"
        >
          <Background variant={BackgroundVariant.Dots} gap={24} size={1.4} />
          {bare && <PlainStreams nodes={arranged?.cards ?? nodes} edges={edges} />}
          <PipelineMap nodes={arranged?.nodes ?? nodes} />
          <CanvasTools editable={editable} />
          <ArrangementSwitch />
          {!arranged && <Notes />}
          {arranged && <Threads threads={arranged.threads} />}
          <LanePanels lanes={arranged?.layout.lanes ?? null} />
          <RefusalHint />
          <PassingHint />
        </ReactFlow>
      </LinesContext>
    </LookContext>
  );
}

/** While all of the pipeline is in view it would only lie over cards. */
function PipelineMap({ nodes }: { nodes: readonly AnyNode[] }) {
  const places = useMemo(() => nodes.flatMap(placesOf), [nodes]);
  const seen = useStore(({ transform: [x, y, zoom], width, height }) =>
    allSeen(places, { x, y, zoom }, { width, height }),
  );
  if (seen) return null;
  return (
    <MiniMap
      pannable
      zoomable
      ariaLabel="Map of the pipeline"
      nodeBorderRadius={10}
      nodeClassName={mapClass}
    />
  );
}

/** What React Flow draws and does otherwise when the canvas is arranged by node. */
const inLanes = ({ layout: _, cards: __, threads: ___, ...own }: Arranged) => ({
  ...own,
  // the panel beside it would load an element's charts under a hand that drags
  selectNodesOnDrag: false,
  nodeTypes: LANE_NODE_TYPES,
  edgeTypes: LANE_EDGE_TYPES,
});

const nothing = (): void => undefined;
/** Said in full: where React Flow is given nothing, it goes on with what it was given in lanes. */
const AS_DRAWN = {
  onNodeDragStart: nothing,
  onNodeDrag: nothing,
  onNodeDragStop: nothing,
  selectNodesOnDrag: true,
};

type Refusal = { reason: string; mends: Mend[] };

function refusal(from: PortRef, fromType: string, to: PortRef, toType: string): Refusal {
  if (fromType === toType) {
    const ports = fromType === "source" ? "outputs" : "inputs";
    return { reason: `Both are ${ports}. Draw from an output to an input.`, mends: [] };
  }
  const { operators, schemas } = useEditor.getState();
  const verdict =
    fromType === "source"
      ? judge(current(), operators, from, to, schemas)
      : judge(current(), operators, to, from, schemas);
  return verdict.ok ? { reason: "", mends: [] } : verdict;
}

/** While a connection hovers over a port that does not take it: why. */
function RefusalHint() {
  const reason = useConnection((connection) => {
    if (!connection.inProgress || !connection.toHandle || connection.isValid !== false) return "";
    const from = { element: connection.fromNode.id, port: connection.fromHandle.id ?? "out" };
    const to = { element: connection.toHandle.nodeId, port: connection.toHandle.id ?? "in" };
    return refusal(from, connection.fromHandle.type, to, connection.toHandle.type).reason;
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

/** In lanes, a new element is pinned where it is dropped. */
function inLaneAt(document: PipelineDocument, id: string, at: Point): PipelineDocument {
  const layout = laneLayoutNow();
  const lane = layout && draftLaneAt(layout, at);
  return lane ? pinned(document, [id], lane, useEditor.getState().operators) : document;
}

/** Dropping a palette element or files onto the canvas. */
function useDrop(editable: boolean) {
  const flow = useReactFlow();
  return useMemo(
    () => ({
      onDragOver: (event: React.DragEvent) => {
        const { types } = event.dataTransfer;
        if (!editable || !(types.includes(DRAG_TYPE) || types.includes("Files"))) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = "copy";
      },
      onDrop: (event: React.DragEvent) => {
        const type = event.dataTransfer.getData(DRAG_TYPE);
        const files = editable ? [...event.dataTransfer.files] : [];
        if (!type && files.length === 0) return;
        event.preventDefault();
        const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
        const place = { x: at.x - CARD.width / 2, y: at.y - 32 };
        const join: Join = (document, id) => inLaneAt(document, id, at);
        if (type) addElement(type, place, join);
        files.forEach((file, n) =>
          addForFile(file, { x: place.x, y: place.y + n * (CARD.height + 32) }, join),
        );
      },
    }),
    [editable, flow],
  );
}
