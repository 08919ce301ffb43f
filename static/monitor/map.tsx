import { useEffect } from "react";
import { MapPin, Server } from "lucide-react";
import { elementPage } from "../shared/address";
import { get } from "../shared/api";
import { exact, latency, listed, percent } from "../shared/format";
import { useLive } from "../shared/live";
import { mount } from "../shared/mount";
import { loadNow } from "../shared/status";
import type { ClusterNode, MapLink, SiteMap } from "../shared/types";
import { Ago, Problem, Skeleton, StatusMark, Warning, useLoaded } from "../shared/ui/parts";
import { Edges } from "../shared/ui/edges";
import { Frame, Section } from "../shared/ui/frame";
import { GivenMatrix } from "./given-matrix";
import { MapGraph } from "./map-graph";
import { NodeMark } from "./node-tile";
import { linesOf, rateWords, sitesOf, type Site } from "./sites";
import "./monitor.css";
import "./map.css";

/** Lines are measured twice a minute; nodes are live. */
const EVERY_MS = 5000;

function MapPage() {
  const nodes = useLive((live) => (live.loaded ? live.nodes : null));
  // what changes the sites, and so the lines: asked for at once
  const places = nodes?.map((node) => `${node.name} ${node.site} ${node.up}`).join("\n") ?? "";
  const { data, error, reload } = useLoaded("map", (signal) => get<SiteMap>("/map", signal), EVERY_MS);
  useEffect(() => {
    reload();
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [places]);
  return (
    <Frame
      title="Map"
      actions={
        data && (
          <>
            <GivenMatrix kind="latencies" given={data.given} onChanged={reload} />
            <GivenMatrix kind="rates" given={data.given_rates} onChanged={reload} />
          </>
        )
      }
    >
      {!(data && nodes) &&
        (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={6} height={44} />)}
      {data && nodes && <Shown map={data} sites={sitesOf(nodes, data)} />}
    </Frame>
  );
}

function Shown({ map, sites }: { map: SiteMap; sites: Site[] }) {
  const names = sites.map((site) => site.name);
  const unknown = [...new Set([...map.given.unknown, ...map.given_rates.unknown])].sort();
  return (
    <>
      <p className="muted">
        Latency is the time that a row needs from one site to another: half the time until a small request is
        answered. Elements send their rows through the Kafka broker, so a row travels to the broker and from
        there to its reader.
      </p>
      {unknown.length > 0 && (
        <Warning>
          Figures were set for {listed(unknown)}, but no node is there. Check whether the names match the
          sites here.
        </Warning>
      )}
      {sites.length < 2 && <Alone sites={sites} />}
      {sites.length > 1 && (
        <>
          <MapGraph sites={sites} lines={linesOf(names, map.links)} />
          <Section title="From site to site">
            <Matrix names={names} links={map.links} broker={map.broker} />
          </Section>
        </>
      )}
      {sites.length > 0 && (
        <Section title="Sites">
          <Sites sites={sites} />
        </Section>
      )}
    </>
  );
}

function Alone({ sites }: { sites: Site[] }) {
  const [only] = sites;
  if (!only)
    return (
      <div className="card empty">
        <Server aria-hidden="true" />
        <h2>There is no machine yet</h2>
        <p>The map shows where your machines are and how far they are from each other.</p>
        <a className="button" href="/nodes/">
          Add a machine
        </a>
      </div>
    );
  return (
    <div className="card empty">
      <MapPin aria-hidden="true" />
      <h2>All nodes are at one site: {only.name}</h2>
      <p>
        When nodes are at two sites, they measure the line between them. Open a node to set its site. A node
        without a site counts as a site of its own.
      </p>
      <a className="button" href={`/nodes/${encodeURIComponent(only.nodes[0]?.name ?? "")}`}>
        Open {only.nodes[0]?.name}
      </a>
    </div>
  );
}

function Matrix({ names, links, broker }: { names: string[] } & Pick<SiteMap, "links" | "broker">) {
  const toBroker = new Map(broker.map((each) => [each.site, each]));
  const way = new Map(links.map((link) => [`${link.a}\n${link.b}`, link]));
  return (
    <Edges className="card map-matrix-place">
      {(ref) => (
        // what is wider than the window is scrolled, by keys as well
        <div
          ref={ref}
          className="table-wrap"
          tabIndex={0}
          role="group"
          aria-label="Latency and rate from site to site"
        >
          <table className="table map-matrix">
            <thead>
              <tr>
                <th scope="col">from \ to</th>
                {names.map((name) => (
                  <th key={name} scope="col" className="num">
                    {name}
                  </th>
                ))}
                <th scope="col" className="num">
                  Kafka broker
                </th>
              </tr>
            </thead>
            <tbody>
              {names.map((from) => (
                <tr key={from}>
                  <th scope="row">{from}</th>
                  {names.map((to) => (
                    <td key={to} className="num">
                      <Cell same={from === to} link={way.get(`${from}\n${to}`)} />
                    </td>
                  ))}
                  <td className="num">
                    <BrokerCell way={toBroker.get(from)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Edges>
  );
}

function Cell({ same, link }: { same: boolean; link: MapLink | undefined }) {
  if (same) return <span className="muted">same site</span>;
  if (!link) return <span className="muted">not measured yet</span>;
  const broken = link.unreachable_since;
  const measured = link.measured_at ? `Measured ${exact(link.measured_at)}` : undefined;
  return (
    <span title={link.source === "given" ? "Set by a person" : measured}>
      {link.latency_ms != null && latency(link.latency_ms)}
      {link.source === "given" && <span className="muted"> given</span>}
      {broken ? (
        <span className="map-matrix__rate">
          <StatusMark status="failed" word="unreachable" /> since <Ago at={broken} />
        </span>
      ) : (
        <span className="map-matrix__rate">
          {rateWords(link.bytes_per_s) || "rate not measured yet"}
          {link.rate_given && " given"}
        </span>
      )}
    </span>
  );
}

function BrokerCell({ way }: { way: SiteMap["broker"][number] | undefined }) {
  if (!way) return <span className="muted">not measured yet</span>;
  return <span title={`Measured ${exact(way.measured_at)}`}>{latency(way.latency_ms)}</span>;
}

function Sites({ sites }: { sites: Site[] }) {
  return (
    <div className="card table-wrap">
      <table className="table">
        <thead>
          <tr>
            <th>Site</th>
            <th>Node</th>
            <th>State</th>
            <th className="num roomy-only">Cores</th>
            <th className="num">CPU</th>
            <th className="num roomy-only">Memory</th>
            <th className="num roomy-only">Battery</th>
            <th>External sources</th>
          </tr>
        </thead>
        <tbody>
          {sites.flatMap((site) =>
            site.nodes.map((node, index) => (
              <Row key={node.name} site={index ? null : site} node={node} all={site} />
            )),
          )}
        </tbody>
      </table>
    </div>
  );
}

/** `site`: named in the first of its rows alone. */
function Row({ site, all, node }: { site: Site | null; all: Site; node: ClusterNode }) {
  const load = loadNow(node);
  const sources = all.sources.filter((source) => source.node === node.name);
  return (
    <tr>
      <td>{site && (site.named ? <b>{site.name}</b> : <span className="muted">not set</span>)}</td>
      <td>
        <a href={`/nodes/${encodeURIComponent(node.name)}`}>{node.name}</a>
      </td>
      <td>
        <NodeMark node={node} />
      </td>
      <td className="num roomy-only">{node.cores || "–"}</td>
      <td className="num">{percent(load.cpu_ratio)}</td>
      <td className="num roomy-only">{percent(load.memory_ratio)}</td>
      <td className="num roomy-only">
        {node.up && load.battery_ratio == null ? "none" : percent(load.battery_ratio)}
      </td>
      <td>
        {sources.length === 0 && <span className="muted">nothing</span>}
        {sources.map((source, index) => (
          <span key={`${source.pipeline}/${source.element}`}>
            {index > 0 && ", "}
            <a
              href={elementPage(source.pipeline, source.element)}
              title={`${source.pipeline} / ${source.title}`}
            >
              {source.title}
            </a>
          </span>
        ))}
      </td>
    </tr>
  );
}

mount(<MapPage />);
