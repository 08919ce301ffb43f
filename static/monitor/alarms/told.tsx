/** Who is told of alarms: the routes, and the channels that an admin makes. */
import { useState } from "react";
import { Plus } from "lucide-react";
import { del, get, patch, post, problemText } from "../../shared/api";
import { roleReason } from "../../shared/page";
import type { AlarmChannel, AlarmRoute } from "../../shared/types";
import { confirm } from "../../shared/ui/confirm";
import { Dialog } from "../../shared/ui/dialog";
import { Text } from "../../shared/ui/field";
import { Ago, Problem, Skeleton, StatusMark, useLoaded } from "../../shared/ui/parts";
import { toast, toastError } from "../../shared/ui/toast";
import { ItemActions, ItemHead } from "./item";
import { RouteForm } from "./route-form";
import { routeSentence } from "./words";

const useChannels = () =>
  useLoaded("alarm channels", (signal) => get<AlarmChannel[]>("/alarms/channels", signal), 5000);

async function removed(what: string, name: string, text: string, path: string): Promise<boolean> {
  const agreed = await confirm({ title: `Delete ${name}?`, text, action: `Delete ${name}`, danger: true });
  if (!agreed) return false;
  return del(path)
    .then(() => true)
    .catch((error: unknown) => {
      toastError(`The ${what} ${name} was not deleted`, error);
      return false;
    });
}

export function Routes() {
  const {
    data: routes,
    error,
    reload,
  } = useLoaded("alarm routes", (signal) => get<AlarmRoute[]>("/alarms/routes", signal), 5000);
  const { data: channels = [] } = useChannels();
  const [form, setForm] = useState<AlarmRoute | "new" | null>(null);
  const locked = roleReason("operator") ?? (channels.length ? null : "An admin has to make a channel first.");
  if (!routes) return error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={2} height={40} />;
  const enable = (route: AlarmRoute) =>
    patch(`/alarms/routes/${route.id}`, { enabled: !route.enabled })
      .then(reload)
      .catch((failed: unknown) => toastError(`${route.name} was not changed`, failed));
  const remove = async (route: AlarmRoute) => {
    const text = "Messages that wait are sent all the same.";
    if (await removed("route", route.name, text, `/alarms/routes/${route.id}`)) reload();
  };
  return (
    <section className="stack alarm-section" aria-label="Routes">
      <div className="row row--between row--wrap">
        <h2 className="section-title">Routes: which alarms go where</h2>
        <button
          type="button"
          className="button"
          disabled={!!locked}
          title={locked ?? undefined}
          onClick={() => setForm("new")}
        >
          <Plus aria-hidden="true" />
          New route
        </button>
      </div>
      {routes.length === 0 && <p className="muted">No route yet, so Fogline sends no messages.</p>}
      <ul className="alarm-items">
        {routes.map((route) => (
          <li key={route.id}>
            <ItemHead
              name={route.name}
              mark={
                <StatusMark
                  status={route.enabled ? "running" : "stopped"}
                  word={route.enabled ? "on" : "off"}
                />
              }
              locked={roleReason("operator")}
              actions={[
                [route.enabled ? "Switch off" : "Switch on", () => void enable(route)],
                ["Change", () => setForm(route)],
                ["Delete", () => void remove(route)],
              ]}
            />
            <p>{routeSentence(route.spec, channels)}</p>
          </li>
        ))}
      </ul>
      {form && (
        <RouteForm
          row={form === "new" ? null : form}
          channels={channels}
          onClose={() => setForm(null)}
          onSaved={() => {
            setForm(null);
            reload();
          }}
        />
      )}
    </section>
  );
}

export function Channels() {
  const { data: channels, error, reload } = useChannels();
  const [form, setForm] = useState<AlarmChannel | "new" | null>(null);
  const locked = roleReason("admin");
  if (!channels)
    return error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={2} height={40} />;
  const test = (channel: AlarmChannel) =>
    post(`/alarms/channels/${channel.id}/test`)
      .then(() =>
        toast({
          tone: "done",
          title: `A test goes to ${channel.name}`,
          text: "Messages shows the result.",
        }),
      )
      .catch((failed: unknown) => toastError("No test was sent", failed));
  const enable = (channel: AlarmChannel) =>
    patch(`/alarms/channels/${channel.id}`, { enabled: !channel.enabled })
      .then(reload)
      .catch((failed: unknown) => toastError(`${channel.name} was not changed`, failed));
  const remove = async (channel: AlarmChannel) => {
    const text = "Its messages go from the log, too.";
    if (await removed("channel", channel.name, text, `/alarms/channels/${channel.id}`)) reload();
  };
  return (
    <section className="stack alarm-section" aria-label="Channels">
      <div className="row row--between row--wrap">
        <h2 className="section-title">Channels: mail, chats, SMS, webhooks</h2>
        <button
          type="button"
          className="button"
          disabled={!!locked}
          title={locked ?? undefined}
          onClick={() => setForm("new")}
        >
          <Plus aria-hidden="true" />
          New channel
        </button>
      </div>
      {channels.length === 0 && <p className="muted">No channel yet. An admin makes one.</p>}
      <ul className="alarm-items">
        {channels.map((channel) => (
          <li key={channel.id}>
            <ItemHead
              name={channel.name}
              mark={<ChannelMark channel={channel} />}
              locked={null}
              actions={[["Send a test", () => void test(channel)]]}
            />
            <div className="row row--between row--wrap">
              <p className="muted small">
                {channel.kind}
                {channel.worked_at && (
                  <>
                    , took a message <Ago at={channel.worked_at} />
                  </>
                )}
                {channel.waiting > 0 && `, ${channel.waiting} waiting`}
                {channel.error && `. ${channel.error}`}
              </p>
              <ItemActions
                name={channel.name}
                locked={locked}
                actions={[
                  [channel.enabled ? "Switch off" : "Switch on", () => void enable(channel)],
                  ["Change", () => setForm(channel)],
                  ["Delete", () => void remove(channel)],
                ]}
              />
            </div>
          </li>
        ))}
      </ul>
      {form && (
        <ChannelForm
          row={form === "new" ? null : form}
          onClose={() => setForm(null)}
          onSaved={() => {
            setForm(null);
            reload();
          }}
        />
      )}
    </section>
  );
}

function ChannelMark({ channel }: { channel: AlarmChannel }) {
  if (!channel.enabled) return <StatusMark status="stopped" word="off" />;
  if (channel.failing_since) return <StatusMark status="failed" word="fails" />;
  return (
    <StatusMark
      status={channel.worked_at ? "running" : "standby"}
      word={channel.worked_at ? "works" : "new"}
    />
  );
}

function ChannelForm({
  row,
  onClose,
  onSaved,
}: {
  row: AlarmChannel | null;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [refused, setRefused] = useState("");
  const save = () => {
    const saved = row
      ? patch(`/alarms/channels/${row.id}`, { url })
      : post("/alarms/channels", { name, url });
    saved.then(onSaved).catch((error: unknown) => setRefused(problemText(error)));
  };
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={row ? `Change ${row.name}` : "New channel"}
      description="Fogline keeps the URL sealed, and shows it to nobody again."
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="button"
            className="button button--primary"
            disabled={!url.trim() || (!row && !name.trim())}
            onClick={save}
          >
            {row ? "Save channel" : "Create channel"}
          </button>
        </>
      }
    >
      <div className="stack">
        {!row && <Text label="Name" value={name} onChange={setName} maxLength={60} autoFocus />}
        <Text
          label="URL, as apprise writes it"
          value={url}
          onChange={setUrl}
          placeholder="mailtos://user:password@example.org?to=you@example.org"
          maxLength={2000}
          fault={refused}
          alert
        />
        <p className="muted small">
          Examples: mailtos://…, jsons://host/path for a webhook, msteams://…, slack://…, tgram://…, mqtts://…
        </p>
      </div>
    </Dialog>
  );
}
