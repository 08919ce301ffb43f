/** Where a node stands: nodes of one site fail together, so backups go to another. */
import { useState } from "react";
import { MapPin } from "lucide-react";
import { problemText } from "../shared/api";
import { setSite } from "../shared/actions";
import { useLive } from "../shared/live";
import { siteFault } from "../shared/names";
import { roleReason } from "../shared/page";
import type { ClusterNode } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";

export function Site({ node }: { node: ClusterNode }) {
  const [open, setOpen] = useState(false);
  const locked = roleReason("operator");
  return (
    <>
      <button
        className="button button--quiet button--small"
        disabled={!!locked}
        title={locked ?? "Say where it stands: nodes of one site fail together, so backups go to another"}
        onClick={() => setOpen(true)}
      >
        <MapPin aria-hidden="true" />
        {node.site ? `Site: ${node.site}` : "Set its site"}
      </button>
      {open && <SiteDialog node={node} onClose={() => setOpen(false)} />}
    </>
  );
}

function SiteDialog({ node, onClose }: { node: ClusterNode; onClose: () => void }) {
  const nodes = useLive((live) => live.nodes);
  const [text, setText] = useState(node.site);
  const [refused, setRefused] = useState<string | null>(null);
  const wrong = siteFault(text) ?? refused;
  const sites = [...new Set(nodes.map((each) => each.site))].filter(Boolean).sort();
  const submit = () => {
    if (wrong) return;
    setSite(node, text)
      .then(onClose)
      .catch((error: unknown) => setRefused(problemText(error)));
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Where does ${node.name} stand?`}
      description="Nodes of one site share its power and its network. Checkpoints are backed up to a node of another site, where there is one. A node without a site counts as a site of its own."
      footer={
        <>
          <button className="button" onClick={onClose}>
            Cancel
          </button>
          <button className="button button--primary" disabled={!!wrong} onClick={submit}>
            Save site
          </button>
        </>
      }
    >
      <Text
        label="Site"
        value={text}
        known={sites}
        fault={wrong}
        autoFocus
        onChange={(text) => {
          setText(text);
          setRefused(null);
        }}
        onEnter={submit}
      />
    </Dialog>
  );
}
