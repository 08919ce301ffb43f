/** Connections to systems outside: made by admins, used by name. */
import { useState } from "react";
import { Cable, Plus } from "lucide-react";
import { takeNew } from "../shared/address";
import { del, get } from "../shared/api";
import { listed } from "../shared/format";
import { mount } from "../shared/mount";
import { roleReason } from "../shared/page";
import type { ConnectionItem, ConnectionKind } from "../shared/types";
import { confirm } from "../shared/ui/confirm";
import { Frame } from "../shared/ui/frame";
import { Ago, Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { toast, toastError } from "../shared/ui/toast";
import { ConnectionForm } from "./connection-form";
import { ConnectionTest } from "./connection-test";
import "./monitor.css";

const ASKED = takeNew();

function ConnectionsPage() {
  const kinds = useLoaded("connection kinds", (signal) => get<ConnectionKind[]>("/connection-kinds", signal));
  const { data, error, reload } = useLoaded(
    "connections",
    (signal) => get<ConnectionItem[]>("/connections", signal),
    10_000,
  );
  const locked = roleReason("admin");
  const [form, setForm] = useState<ConnectionItem | "new" | null>(ASKED && !locked ? "new" : null);
  const [tested, setTested] = useState<ConnectionItem | null>(null);
  const add = (
    <button
      className="button button--primary"
      disabled={!!locked}
      title={locked ?? undefined}
      onClick={() => setForm("new")}
    >
      <Plus aria-hidden="true" />
      New connection
    </button>
  );
  return (
    <Frame title="Connections" actions={add}>
      {!data && (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={3} height={64} />)}
      {data?.every(({ simulated }) => simulated) && (
        <div className="card empty">
          <Cable aria-hidden="true" />
          <h2>No connections yet</h2>
          <p>
            A connection says how to reach an outside system, such as an MQTT broker. An admin makes it once,
            with its password. Elements use it by its name, so no pipeline holds a password.
          </p>
        </div>
      )}
      {data && data.length > 0 && (
        <ul className="policies">
          {data.map((each) => (
            <Item
              key={each.name}
              item={each}
              onEdit={() => setForm(each)}
              onTest={() => setTested(each)}
              onChange={reload}
            />
          ))}
        </ul>
      )}
      {form && kinds.data && (
        <ConnectionForm
          connection={form === "new" ? null : form}
          kinds={kinds.data}
          onClose={() => setForm(null)}
          onSaved={() => {
            setForm(null);
            reload();
          }}
        />
      )}
      {tested && <ConnectionTest connection={tested} onClose={() => setTested(null)} />}
    </Frame>
  );
}

function Item({
  item,
  onEdit,
  onTest,
  onChange,
}: {
  item: ConnectionItem;
  onEdit: () => void;
  onTest: () => void;
  onChange: () => void;
}) {
  const remove = async () => {
    const agreed = await confirm({
      title: `Delete ${item.name}?`,
      text: "Its password is deleted with it. Drafts that name the connection cannot be deployed until there is one of that name again.",
      action: `Delete ${item.name}`,
      danger: true,
    });
    if (!agreed) return;
    try {
      await del(`/connections/${item.name}`);
      toast({ tone: "done", title: `${item.name} is deleted` });
      onChange();
    } catch (error) {
      toastError(`${item.name} was not deleted`, error);
    }
  };
  const admin = roleReason("admin");
  const used = item.used_by.length
    ? `${listed(item.used_by)} ${item.used_by.length === 1 ? "uses" : "use"} it. Undeploy these elements, or deploy them with another connection.`
    : null;
  const actions: [string, () => void, string | null][] = [["Test", onTest, roleReason("operator")]];
  if (!item.simulated)
    actions.push(["Change", onEdit, admin], ["Delete", () => void remove(), admin ?? used]);
  return (
    <li className="card card__body stack stack--tight">
      <div className="row row--between row--wrap">
        <div className="row">
          <h2 className="section-title">{item.name}</h2>
          <span className="muted">{item.title}</span>
        </div>
        <div className="row">
          {actions.map(([title, run, locked]) => (
            <button
              key={title}
              className="button button--quiet button--small"
              disabled={!!locked}
              title={locked ?? undefined}
              aria-label={`${title}: ${item.name}`}
              onClick={run}
            >
              {title}
            </button>
          ))}
        </div>
      </div>
      {item.simulated && (
        <p className="muted">
          Comes with Fogline, to try things out. It is started beside each element that uses it, and ends with
          that element.
        </p>
      )}
      {item.secrets_lost && (
        <p className="field__error">
          Its passwords cannot be opened, since Fogline has another secret key now. Change it, and enter them
          again.
        </p>
      )}
      <p>
        {item.used_by.length
          ? `Used by ${listed(item.used_by)}. A connection in use cannot be deleted.`
          : "No deployed element uses it."}
      </p>
      {item.changed_at && (
        <p className="muted small">
          Changed <Ago at={item.changed_at} />
          {item.changed_by && ` by ${item.changed_by}`}
        </p>
      )}
    </li>
  );
}

mount(<ConnectionsPage />);
