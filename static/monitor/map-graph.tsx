/** Sites as points, the lines between them with what they take and bear. */
import { useEffect, useRef, useState } from "react";
import { plural } from "../shared/format";
import {
  brokenSince,
  latencyWords,
  placesOf,
  rateWords,
  shortName,
  slowest,
  widthOf,
  wordsAt,
  type Line,
  type Site,
} from "./sites";

/** Up to here each line has its words; of more, those of the site that was chosen. */
const WORDED_SITES_MAX = 6;
const ALL = "";

export function MapGraph({ sites, lines }: { sites: Site[]; lines: Line[] }) {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [chosen, setChosen] = useState(ALL);
  useEffect(() => {
    if (!frame.current) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  const height = Math.min(460, Math.max(sites.length === 2 ? 200 : 300, Math.round(width * 0.6)));
  const places = placesOf(sites.length, width, height);
  const at = new Map(sites.map((site, index) => [site.name, places[index] ?? { x: 0, y: 0 }]));
  const choice = at.has(chosen) ? chosen : ALL;
  const shown = lines.filter((line) => choice === ALL || line.a === choice || line.b === choice);
  const worded = choice !== ALL || sites.length <= WORDED_SITES_MAX;
  return (
    <div className="card card__body stack stack--tight">
      {sites.length > WORDED_SITES_MAX && (
        <label className="row small">
          Lines of
          <select
            className="select select--short"
            value={choice}
            onChange={(event) => setChosen(event.target.value)}
          >
            <option value={ALL}>all sites</option>
            {sites.map((site) => (
              <option key={site.name}>{site.name}</option>
            ))}
          </select>
        </label>
      )}
      <div ref={frame} className="map-graph">
        {width > 0 && (
          <svg
            width={width}
            height={height}
            role="img"
            aria-label="The sites and the lines between them; the table below has the same figures"
          >
            {shown.map((line) => {
              const [from, to] = [at.get(line.a), at.get(line.b)];
              if (!from || !to) return null;
              const broken = brokenSince(line) !== null;
              return (
                <line
                  key={`${line.a}\n${line.b}`}
                  className={`map-graph__line${broken ? " map-graph__line--broken" : ""}`}
                  x1={from.x}
                  y1={from.y}
                  x2={to.x}
                  y2={to.y}
                  strokeWidth={widthOf(slowest(line))}
                />
              );
            })}
            {worded && shown.map((line) => <Words key={`${line.a}\n${line.b}`} line={line} at={at} />)}
            {sites.map((site) => {
              const place = at.get(site.name) ?? { x: 0, y: 0 };
              return <Point key={site.name} site={site} {...place} above={place.y < height / 2 - 1} />;
            })}
          </svg>
        )}
      </div>
      <p className="small muted">
        A thicker line sends more bytes a second. A dashed one is broken: no probe gets through.
      </p>
    </div>
  );
}

function Words({ line, at }: { line: Line; at: Map<string, { x: number; y: number }> }) {
  const [from, to] = [at.get(line.a), at.get(line.b)];
  if (!from || !to) return null;
  const { x, y } = wordsAt(from, to, at.size);
  const rate = rateWords(slowest(line));
  if (brokenSince(line) !== null)
    return (
      <text className="map-graph__words map-graph__words--broken" x={x} y={y + 4}>
        unreachable
      </text>
    );
  return (
    <text className="map-graph__words" x={x} y={rate ? y - 3 : y + 4}>
      <tspan>{latencyWords(line)}</tspan>
      {rate && (
        <tspan className="map-graph__rate" x={x} dy="1.25em">
          {rate}
        </tspan>
      )}
    </text>
  );
}

function Point({ site, x, y, above }: { site: Site; x: number; y: number; above: boolean }) {
  const up = site.nodes.some((node) => node.up);
  const [nameY, countY] = above ? [y - 28, y - 14] : [y + 22, y + 36];
  return (
    <g>
      <circle className={`map-graph__site${up ? "" : " map-graph__site--down"}`} cx={x} cy={y} r={8} />
      <text className="map-graph__name" x={x} y={nameY}>
        <title>{site.name}</title>
        {shortName(site.name)}
      </text>
      <text className="map-graph__words map-graph__rate" x={x} y={countY}>
        {up ? plural(site.nodes.length, "node") : "no node is up"}
        {site.sources.length > 0 && ` · ${plural(site.sources.length, "source")}`}
      </text>
    </g>
  );
}
