import { useParam } from "../../shared/address";
import { useLive } from "../../shared/live";
import { mount } from "../../shared/mount";
import { Frame } from "../../shared/ui/frame";
import { Tabs } from "../../shared/ui/tabs";
import { Channels, Routes } from "./told";
import { Messages } from "./messages";
import { NoticesButton } from "./notices-button";
import { OpenAlarms, PastAlarms } from "./list";
import { Rules } from "./rules";
import { AlarmDialog } from "./alarm";
import "../monitor.css";
import "./alarms.css";

function AlarmsPage() {
  const [tab, setTab] = useParam("tab");
  const [shown, setShown] = useParam("alarm");
  const open = useLive((state) => state.alarms.length);
  const show = (id: number) => setShown(String(id));
  return (
    <Frame title="Alarms" actions={<NoticesButton />}>
      <div className="card">
        <Tabs
          label="Alarms"
          value={tab || "open"}
          onChange={(next) => setTab(next === "open" ? "" : next)}
          tabs={[
            { id: "open", title: `Active${open ? ` (${open})` : ""}`, content: <OpenAlarms onShow={show} /> },
            { id: "past", title: "Past", content: <PastAlarms onShow={show} /> },
            { id: "rules", title: "Rules", content: <Rules /> },
            {
              id: "told",
              title: "Who is told",
              content: (
                <>
                  <Routes />
                  <Channels />
                </>
              ),
            },
            { id: "messages", title: "Messages", content: <Messages /> },
          ]}
        />
      </div>
      {/^\d{1,15}$/.test(shown) && <AlarmDialog id={Number(shown)} onClose={() => setShown("")} />}
    </Frame>
  );
}

mount(<AlarmsPage />);
