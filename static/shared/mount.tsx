import { StrictMode, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { setNonce } from "get-nonce";
import { Provider as TooltipProvider } from "@radix-ui/react-tooltip";
import { useSession } from "./api";
import { startClock } from "./clock";
import { live, useLive } from "./live";
import { Boundary } from "./ui/boundary";
import { ConfirmHost } from "./ui/confirm";
import { Toasts } from "./ui/toast";
import "./ui/dialog.css";
import "./ui/ui.css";

/** Put a view into `#root`, with what every view needs around it. `byLink`: nobody is signed in. */
export function mount(view: ReactNode, { byLink = false } = {}): void {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content;
  if (nonce) setNonce(nonce);
  const root = document.getElementById("root");
  if (!root) return;
  startClock();
  if (!byLink) live.start();
  createRoot(root).render(
    <StrictMode>
      <TooltipProvider delayDuration={350}>
        {!byLink && <SignedOut />}
        <Boundary>{view}</Boundary>
        <ConfirmHost />
        <Toasts />
      </TooltipProvider>
    </StrictMode>,
  );
}

/** Says that the session is over and the page no longer changes. */
function SignedOut() {
  const signedOut = useLive((state) => state.signedOut);
  const refused = useSession((state) => state.over);
  if (!signedOut && !refused) return null;
  const next = encodeURIComponent(window.location.pathname + window.location.search);
  return (
    <div className="signed-out" role="alert">
      You are signed out, so this page no longer changes. What you have not saved is kept in this browser and
      is back when you have signed in.
      <a className="button button--small" href={`/accounts/login/?next=${next}`}>
        Sign in again
      </a>
    </div>
  );
}
