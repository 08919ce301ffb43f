/** Sites as points, and the lines between them with latency and rate. */
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
  wordsFit,
  wordsFrom,
  type Line,
  type Site,
} from "./sites";

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
  const height = sites.length === 2 ? 140 : Math.min(460, Math.max(300, Math.round(width * 0.6)));
  const places = placesOf(sites.length, width, height);
  const numberOf = new Map(sites.map((site, index) => [site.name, index]));
  const choice = numberOf.has(chosen) ? chosen : ALL;
  const shown = lines.filter((line) => choice === ALL || line.a === choice || line.b === choice);
  const fits = wordsFit(sites.length, width);
  const wordsOf = ({ a, b }: Line) => {
    const [from, to] = [numberOf.get(a) ?? 0, numberOf.get(b) ?? 0];
    if (choice === ALL || fits) return wordsAt(places, from, to);
    return choice === a ? wordsFrom(places, from, to) : wordsFrom(places, to, from);
  };
  return (
    <div className="card card__body stack stack--tight">
      {width > 0 && !fits && (
        <label className="row small">
          Figures of the lines of
          <select
            className="select select--short"
            value={choice}
            onChange={(event) => setChosen(event.target.value)}
          >
            <option value={ALL}>choose a site</option>
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
            aria-label="The sites and the lines between them. The table below has the same figures."
          >
            {shown.map((line) => {
              const [from, to] = [places[numberOf.get(line.a) ?? 0], places[numberOf.get(line.b) ?? 0]];
              const broken = brokenSince(line) !== null;
              return (
                <line
                  key={`${line.a}\n${line.b}`}
                  className={`map-graph__line${broken ? " map-graph__line--broken" : ""}`}
                  x1={from?.x}
                  y1={from?.y}
                  x2={to?.x}
                  y2={to?.y}
                  strokeWidth={widthOf(slowest(line))}
                />
              );
            })}
            {(fits || choice !== ALL) &&
              shown.map((line) => <Words key={`${line.a}\n${line.b}`} line={line} {...wordsOf(line)} />)}
            {sites.map((site, index) => {
              const place = places[index] ?? { x: 0, y: 0 };
              return <Point key={site.name} site={site} {...place} above={place.y < height / 2 - 1} />;
            })}
          </svg>
        )}
      </div>
      <p className="small muted">
        The rate is that of the slower direction; the table has both. A thicker line carries more bytes per
        second. A dashed line is broken: no probe gets through.
      </p>
    </div>
  );
}

function Words({ line, x, y }: { line: Line; x: number; y: number }) {
  const rate = rateWords(slowest(line));
  if (brokenSince(line) !== null)
    return (
      <text className="map-graph__words map-graph__words--broken" x={x} y={y + 4}>
        unreachable
      </text>
    );
  return (
    <text className="map-graph__words" x={x} y={rate ? y - 8 : y + 4}>
      <tspan>{latencyWords(line)}</tspan>
      {rate && (
        <tspan className="map-graph__rate" x={x} dy="2em">
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
        {up ? plural(site.nodes.length, "node") : "no node is running"}
        {site.sources.length > 0 && ` · ${plural(site.sources.length, "source")}`}
      </text>
    </g>
  );
}
