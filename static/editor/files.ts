/** Import and export of a pipeline as a file. The YAML library is loaded when it is needed. */
import { download } from "../shared/download";
import type { PipelineDocument } from "../shared/types";

async function toYaml(document: PipelineDocument): Promise<string> {
  const { stringify } = await import("yaml");
  return stringify(document, { lineWidth: 110, aliasDuplicateObjects: false });
}

export async function exportDocument(document: PipelineDocument, kind: "yaml" | "json"): Promise<void> {
  const name = document.metadata.name;
  if (kind === "yaml") download(`${name}.yaml`, "application/yaml", await toYaml(document));
  else download(`${name}.json`, "application/json", JSON.stringify(document, null, 2));
}

/** The document in a YAML or JSON text; throws with what is wrong in words. */
export async function parseText(text: string): Promise<PipelineDocument> {
  const { parse } = await import("yaml");
  let data: unknown;
  try {
    data = parse(text, { maxAliasCount: 0, schema: "core" });
  } catch (error) {
    throw new Error(
      `This is neither YAML nor JSON: ${error instanceof Error ? error.message.split("\n")[0] : ""}`,
    );
  }
  const document = data as Partial<PipelineDocument> | null;
  if (!document || typeof document !== "object" || document.kind !== "Pipeline" || !document.metadata?.name) {
    throw new Error("This is not a pipeline: it needs kind: Pipeline and metadata.name.");
  }
  const elements = document.spec?.elements;
  if (
    elements !== undefined &&
    (!Array.isArray(elements) || elements.some((element) => typeof element?.id !== "string"))
  ) {
    throw new Error("spec.elements must be a list of elements with an id each.");
  }
  return { ...document, spec: { ...document.spec, elements: elements ?? [] } } as PipelineDocument;
}

export function chooseFile(accept: string): Promise<File | null> {
  return new Promise((resolve) => {
    const input = window.document.createElement("input");
    input.type = "file";
    input.accept = accept;
    input.onchange = () => resolve(input.files?.[0] ?? null);
    input.oncancel = () => resolve(null);
    input.click();
  });
}
