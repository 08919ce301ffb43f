import { useMemo, type CSSProperties } from "react";
import { plural } from "../shared/format";
import type { Operator, PipelineDocument } from "../shared/types";
import { BOX, pictureOf } from "./template-picture";

interface Props {
  title: string;
  document: PipelineDocument;
  operators: ReadonlyMap<string, Operator>;
  /** with the elements' names where there is room for them; it scrolls if there is a little less */
  named?: boolean;
}

/** Scale of a picture with names: between the smallest readable size and that of normal text. */
const NAMED_SCALE_MIN = 0.48;
const NAMED_SCALE_MAX = 0.56;

/** A pipeline as it lies on the canvas, small: boxes by their kind, lines for streams. */
export function PipelinePicture({ title, document, operators, named = false }: Props) {
  const { boxes, streams, view } = useMemo(() => pictureOf(document, operators), [document, operators]);
  const size = {
    "--least": `${Math.round(view.width * NAMED_SCALE_MIN)}px`,
    "--most": `${Math.round(view.width * NAMED_SCALE_MAX)}px`,
  } as CSSProperties;
  return (
    <svg
      className={`picture${named ? " picture--named" : ""}`}
      role="img"
      aria-label={`The pipeline ${title}: ${plural(boxes.length, "element")}, ${plural(streams.length, "stream")}`}
      viewBox={`${view.x} ${view.y} ${view.width} ${view.height}`}
      style={named ? size : undefined}
    >
      {streams.map(({ key, path }) => (
        <path key={key} className="picture__stream" d={path} />
      ))}
      {boxes.map((box) => (
        <g key={box.id} data-category={box.category}>
          <rect className="picture__ground" x={box.x} y={box.y} rx={14} {...BOX} />
          <rect className="picture__box" x={box.x} y={box.y} rx={14} {...BOX} />
          {named && (
            <foreignObject x={box.x} y={box.y} {...BOX}>
              <div className="picture__name">
                <span>{box.name}</span>
              </div>
            </foreignObject>
          )}
        </g>
      ))}
    </svg>
  );
}
