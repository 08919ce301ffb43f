/** Whether a dialog is open that is asked for from elsewhere. */
import { create } from "zustand";

export function createOpenState() {
  const useState = create<{ open: boolean }>(() => ({ open: false }));
  return {
    useOpen: () => useState((state) => state.open),
    open: () => useState.setState({ open: true }),
    close: () => useState.setState({ open: false }),
    toggle: () => useState.setState(({ open }) => ({ open: !open })),
  };
}
