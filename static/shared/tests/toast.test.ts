import { expect, test } from "vitest";
import { forget, toast, useToasts } from "../ui/toast";

test("a later outcome of the same takes the place of an earlier one, and other messages stay", () => {
  const titles = () => useToasts.getState().toasts.map(({ title }) => title);
  toast({ tone: "error", title: "Not deployed", about: "deployment" });
  toast({ tone: "error", title: "Not saved" });
  toast({ tone: "error", title: "Not deployed again", about: "deployment" });
  expect(titles()).toEqual(["Not saved", "Not deployed again"]);
  forget("deployment");
  expect(titles()).toEqual(["Not saved"]);
});
