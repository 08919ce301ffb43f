/** Where the user of an element is: policies may have it follow them. */
import { useState } from "react";
import { MapPin } from "lucide-react";
import { setUserPlace } from "../../shared/actions";
import { problemText } from "../../shared/api";
import { instant, momentShort } from "../../shared/format";
import { useLive } from "../../shared/live";
import { siteFault } from "../../shared/names";
import { roleReason } from "../../shared/page";
import { nameOf } from "../../shared/status";
import type { LiveElement } from "../../shared/types";
import { Dialog } from "../../shared/ui/dialog";
import { Text } from "../../shared/ui/field";

/** Of a source, and of what somebody has told it of. */
export function UserPlace({
  pipeline,
  element,
  isSource,
}: {
  pipeline: string;
  element: LiveElement;
  isSource: boolean;
}) {
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
        title={locked ?? "A policy may have it run on the node that is nearest to its user"}
        onClick={() => setOpen(true)}
      >
        <MapPin aria-hidden="true" />
        {element.user ? "Change where its user is" : "Say where its user is"}
      </button>
      {open && <PlaceDialog pipeline={pipeline} element={element} onClose={() => setOpen(false)} />}
    </div>
  );
}

function PlaceDialog({
  pipeline,
  element,
  onClose,
}: {
  pipeline: string;
  element: LiveElement;
  onClose: () => void;
}) {
  const nodes = useLive((live) => live.nodes);
  const [text, setText] = useState(element.user?.site ?? "");
  const [refused, setRefused] = useState<string | null>(null);
  const wrong = siteFault(text) ?? refused;
  const sites = [...new Set(nodes.map((node) => node.site || node.name))].sort();
  const submit = () => {
    if (wrong) return;
    setUserPlace(pipeline, element, text)
      .then(onClose)
      .catch((error: unknown) => setRefused(problemText(error)));
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Where is the user of ${nameOf(element)}?`}
      description="A site of the map: where a node stands, or one of which latencies are given. It stays until another one is told, here or by the user's device. A policy may have the element follow; without one nothing moves."
      footer={
        <>
          <button className="button" onClick={onClose}>
            Cancel
          </button>
          <button className="button button--primary" disabled={!!wrong} onClick={submit}>
            Save place
          </button>
        </>
      }
    >
      <Text
        label="Site, empty: not known"
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
