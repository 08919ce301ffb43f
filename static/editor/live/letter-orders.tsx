/** What was done about dead letters: who dropped or replayed how many, and what became of the rows. */
import { Undo2, X } from "lucide-react";
import { get } from "../../shared/api";
import { roleReason } from "../../shared/page";
import type { LetterOrder, LetterOrderProgress } from "../../shared/types";
import { Ago, useLoaded } from "../../shared/ui/parts";
import { ActionButton } from "./action-button";
import { cancelOrder, lettersOrderPath, putBack, type Of } from "./letter-actions";
import { orderTitle, orderWords } from "./letters-words";

const EVERY_MS = 3000;
/** of so many the progress is asked for */
const FOLLOWED = 3;

export function LetterOrders({ of, orders, reload }: { of: Of; orders: LetterOrder[]; reload: () => void }) {
  if (orders.length === 0) return null;
  const followed = orders.filter(({ did, taken }) => did === "replay" && taken > 0).slice(0, FOLLOWED);
  return (
    <section className="letters-done" aria-label="What was done">
      <h3 className="section-title">What was done</h3>
      <ul className="letters">
        {orders.map((order) => (
          <li key={order.id}>
            <div className="letters__head">
              <b>{orderTitle(order)}</b>
              <span className="muted small num">
                <Ago at={order.at} />
                {order.by && ` by ${order.by}`}
              </span>
            </div>
            {order.reason && (
              <div className="muted">
                {order.reason}
                {order.text && ` · with the text "${order.text}"`}
              </div>
            )}
            {followed.includes(order) ? <Followed of={of} order={order} /> : <Words order={order} />}
            {order.status === "pending" && !order.cancel_requested && (
              <ActionButton
                title="Cancel"
                icon={<X aria-hidden="true" />}
                disabled={roleReason("operator")}
                run={() => void cancelOrder(of, order).then(reload)}
              />
            )}
            {order.may_be_put_back && (
              <ActionButton
                title="Put back"
                icon={<Undo2 aria-hidden="true" />}
                disabled={roleReason("operator")}
                run={() => void putBack(of, order).then(reload)}
              />
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Followed({ of, order }: { of: Of; order: LetterOrder }) {
  const path = `${lettersOrderPath(of)}/orders/${order.id}`;
  const { data } = useLoaded(path, (signal) => get<LetterOrderProgress>(path, signal), EVERY_MS);
  return <Words order={data ?? order} />;
}

function Words({ order }: { order: LetterOrder | LetterOrderProgress }) {
  return (
    <>
      <div role="status">{orderWords(order)}</div>
      {order.stayed.slice(0, 3).map(({ offset, why }) => (
        <div key={offset} className="muted small">
          Letter {offset}: {why}
        </div>
      ))}
    </>
  );
}
