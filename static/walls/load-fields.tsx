/** The fields of a tile of load: which figure, of which element or node, and how long. */
import { useEffect } from "react";
import { get } from "../shared/api";
import { LOADS, ofNode, type LoadFigure } from "../shared/load-charts";
import type { ClusterNode, LiveElement } from "../shared/types";
import { Choice } from "../shared/ui/field";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { LOAD_RANGES } from "./series";
import { PipelineFields, type Fields } from "./tile-fields";

const FIGURES = (Object.keys(LOADS) as LoadFigure[]).map((figure): [string, string] => [
  figure,
  `${LOADS[figure].title} of ${ofNode(figure) ? "a node" : "an element"}`,
]);

export function LoadFields({ wish, set }: Fields) {
  return (
    <>
      <Choice
        label="Figure"
        value={wish.figure}
        options={FIGURES}
        onChange={(figure) => set({ figure: figure as LoadFigure })}
      />
      {ofNode(wish.figure) ? <NodeField wish={wish} set={set} /> : <ElementFields wish={wish} set={set} />}
      <Choice
        label="Time"
        value={String(wish.range_s)}
        options={LOAD_RANGES.map(([seconds, words]) => [String(seconds), `Last ${words}`])}
        onChange={(range) => set({ range_s: Number(range) })}
      />
    </>
  );
}

function NodeField({ wish, set }: Fields) {
  const { data: nodes, error } = useLoaded("nodes", (signal) => get<ClusterNode[]>("/nodes", signal));
  const first = nodes?.[0]?.name;
  useEffect(() => {
    if (!wish.node && first) set({ node: first });
  }, [wish.node, first, set]);
  if (!nodes) return error ? <Problem error={error} /> : <Skeleton lines={1} height={32} />;
  const names = [...new Set([...nodes.map(({ name }) => name), wish.node])].filter(Boolean);
  return (
    <Choice
      label="Node"
      value={wish.node}
      options={names.map((name) => [name, name])}
      onChange={(node) => set({ node })}
    />
  );
}

function ElementFields({ wish, set }: Fields) {
  const { pipeline } = wish;
  const { data: elements, error } = useLoaded(`elements ${pipeline}`, (signal) =>
    pipeline
      ? get<LiveElement[]>(`/pipelines/${encodeURIComponent(pipeline)}/elements`, signal)
      : Promise.resolve([]),
  );
  const known = elements?.filter(({ status }) => status !== "view");
  const first = known?.[0]?.id;
  const chosen = known?.some(({ id }) => id === wish.element) ?? true;
  useEffect(() => {
    if (!chosen && first) set({ element: first });
  }, [chosen, first, set]);
  return (
    <PipelineFields wish={wish} set={set} cleared={{ element: "" }}>
      {known && known.length > 0 && (
        <Choice
          label="Element"
          value={wish.element}
          options={known.map(({ id, title }) => [id, title])}
          onChange={(element) => set({ element })}
        />
      )}
      {error && !elements ? <Problem error={error} /> : null}
    </PipelineFields>
  );
}
