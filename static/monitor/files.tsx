/** The uploaded files of all pipelines. */
import { ArrowLeft } from "lucide-react";
import { cameFrom, editPage } from "../shared/address";
import { FileList } from "../shared/files/file-list";
import { ImportHost } from "../shared/files/import-dialog";
import { useLive } from "../shared/live";
import { mount } from "../shared/mount";
import { Frame } from "../shared/ui/frame";
import "./monitor.css";

/** The way back to the form that led here. */
function Back() {
  const from = cameFrom();
  const title = useLive((state) => state.pipelines.find(({ name }) => name === from?.pipeline)?.title);
  if (!from) return null;
  return (
    <a className="button" href={editPage(from.pipeline, from.element)}>
      <ArrowLeft aria-hidden="true" />
      Back to {title ?? from.pipeline}
    </a>
  );
}

mount(
  <Frame title="Files" actions={<Back />}>
    <FileList />
    <ImportHost />
  </Frame>,
);
