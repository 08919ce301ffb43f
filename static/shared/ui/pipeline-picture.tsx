import { useMemo, type CSSProperties } from "react";
import { plural } from "../format";
import { BOX, pictureOf, type DrawnElement } from "../pipeline-picture";
import { toneOf, wordOf } from "../status";
import "./pipeline-picture.css";

interface Props {
  title: string;
  elements: readonly DrawnElement[];
  /** with the elements' names where there is room for them; it scrolls if there is a little less */
  named?: boolean;
}

/** Scale of a picture with names: between the smallest readable size and that of normal text. */
const NAMED_SCALE_MIN = 0.48;
const NAMED_SCALE_MAX = 0.56;

/** Its letters on a wall that is read from afar, in lengths of the canvas: those of names, and there of states. */
const NAME_SIZE = 22;

/** How large the letters of a picture are there if it fills this room, px. */
export const namePx = (view: Size, room: Size): number =>
  NAME_SIZE * Math.min(room.width / view.width, room.height / view.height);

interface Size {
  width: number;
  height: number;
}

/** A pipeline as it lies on the canvas, small: boxes by their kind, lines for streams. */
export function PipelinePicture({ title, elements, named = false }: Props) {
  const { boxes, streams, view } = useMemo(() => pictureOf(elements), [elements]);
  const size = {
    "--narrowest": `${Math.round(view.width * NAMED_SCALE_MIN)}px`,
    "--widest": `${Math.round(view.width * NAMED_SCALE_MAX)}px`,
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
        <Box key={box.id} box={box} named={named} />
      ))}
    </svg>
  );
}

function Box({ box, named }: { box: DrawnElement; named: boolean }) {
  const { id, title, category, status, x, y } = box;
  const tone = status === undefined ? "" : ` status--${toneOf(status)}`;
  return (
    <g data-element={id} data-category={category} className={tone.trim() || undefined}>
      <rect className="picture__ground" x={x} y={y} rx={14} {...BOX} />
      <rect className={`picture__box${tone && " picture__box--state"}`} x={x} y={y} rx={14} {...BOX} />
      {named && (
        <foreignObject x={x} y={y} {...BOX}>
          <div className="picture__name">
            <span>{title}</span>
            {status !== undefined && <span className="picture__state">{wordOf(status)}</span>}
          </div>
        </foreignObject>
      )}
    </g>
  );
}
