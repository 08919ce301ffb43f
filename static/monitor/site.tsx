/** The site of a node: nodes of one site may fail together, so backups go to another site. */
import { useState } from "react";
import { MapPin } from "lucide-react";
import { setSite } from "../shared/actions";
import { useLive } from "../shared/live";
import { roleReason } from "../shared/page";
import type { ClusterNode } from "../shared/types";
import { SiteDialog } from "../shared/ui/site-dialog";

export function Site({ node }: { node: ClusterNode }) {
  const nodes = useLive((live) => live.nodes);
  const [open, setOpen] = useState(false);
  const locked = roleReason("operator");
  return (
    <>
      <button
        className="button button--quiet button--small"
        disabled={!!locked}
        title={
          locked ??
          "Set where the node is: nodes of one site may fail together, so backups go to another site"
        }
        onClick={() => setOpen(true)}
      >
        <MapPin aria-hidden="true" />
        {node.site ? `Site: ${node.site}` : "Set its site"}
      </button>
      {open && (
        <SiteDialog
          title={`Where is ${node.name}?`}
          description="Nodes of one site share its power and its network. Checkpoints are backed up to a node of another site if there is one. A node without a site counts as a site of its own."
          action="Save site"
          site={node.site}
          known={nodes.map((each) => each.site)}
          save={(site) => setSite(node, site)}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}
