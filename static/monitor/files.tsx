/** The uploaded files of all pipelines. */
import { FileList } from "../shared/files/file-list";
import { ImportHost } from "../shared/files/import-dialog";
import { mount } from "../shared/mount";
import { Frame } from "../shared/ui/frame";
import "./monitor.css";

mount(
  <Frame title="Files">
    <FileList />
    <ImportHost />
  </Frame>,
);
