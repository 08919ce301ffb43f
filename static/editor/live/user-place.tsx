/** Where the user of an element is: policies may have it follow them. */
import { useState } from "react";
import { MapPin } from "lucide-react";
import { setUserPlace } from "../../shared/actions";
import { instant, momentShort } from "../../shared/format";
import { useLive } from "../../shared/live";
import { roleReason } from "../../shared/page";
import { nameOf } from "../../shared/status";
import type { LiveElement } from "../../shared/types";
import { SiteDialog } from "../../shared/ui/site-dialog";

/** Shown for a source, and for an element whose user's place is known. */
export function UserPlace({
  pipeline,
  element,
  isSource,
}: {
  pipeline: string;
  element: LiveElement;
  isSource: boolean;
}) {
  const nodes = useLive((live) => live.nodes);
  const [open, setOpen] = useState(false);
  const locked = roleReason("operator");
  if (!isSource && element.user === null) return null;
  return (
    <div className="row row--wrap">
      {element.user && (
        <span className="small">
          Its user is at {element.user.site} since {momentShort(instant(element.user.since) ?? 0)}.
        </span>
      )}
      <button
        className="button button--quiet button--small"
        disabled={!!locked}
        title={locked ?? "A policy may keep it on the node that is nearest to its user"}
        onClick={() => setOpen(true)}
      >
        <MapPin aria-hidden="true" />
        {element.user ? "Change where its user is" : "Say where its user is"}
      </button>
      {open && (
        <SiteDialog
          title={`Where is the user of ${nameOf(element)}?`}
          description="Enter a site of the map: one with a node, or one whose latencies are given. It stays until you or the user's device report another one. A policy may move the element to its user; without a policy nothing moves."
          label="Site (empty: not known)"
          action="Save place"
          site={element.user?.site ?? ""}
          known={nodes.map((node) => node.site || node.name)}
          save={(site) => setUserPlace(pipeline, element, site)}
          onClose={() => setOpen(false)}
        />
      )}
    </div>
  );
}
