/** Import and export of a pipeline as a file. The server reads and writes YAML: it knows the names of files. */
import { post } from "../shared/api";
import { download, downloadFrom } from "../shared/download";
import { askFiles, type Chosen } from "../shared/files/missing-files";
import type { PipelineDocument, ReadPipeline } from "../shared/types";

/** The saved draft as YAML, with its files by their names. */
export function exportYaml(name: string): void {
  downloadFrom(`/api/v1/pipelines/${encodeURIComponent(name)}/export`, `${name}.yaml`);
}

export function exportJson(document: PipelineDocument): void {
  download(`${document.metadata.name}.json`, "application/json", JSON.stringify(document, null, 2));
}

/** The document in a YAML or JSON text. Asks for files that it names and that are not here; null if the user
 * cancels. Throws ApiError with what is wrong in the text. */
export async function readText(text: string): Promise<PipelineDocument | null> {
  let chosen: Chosen = {};
  for (;;) {
    const { document, missing } = await post<ReadPipeline>("/documents/read", { text, files: chosen });
    if (missing.length === 0) return document as unknown as PipelineDocument;
    const more = await askFiles(missing);
    if (!more) return null;
    chosen = { ...chosen, ...more };
  }
}
