/** Pipelines from a file: each is shown with what stands against it, and all that are chosen come in at once. */
import { useState } from "react";
import { FileUp } from "lucide-react";
import { post } from "../shared/api";
import { chooseFile } from "../shared/download";
import { askFiles, type Chosen as ChosenFiles } from "../shared/files/missing-files";
import { listed, plural } from "../shared/format";
import { TITLE_MAX, titleFault } from "../shared/names";
import { roleReason } from "../shared/page";
import type { ImportedPipeline, MissingFile, ReadItem } from "../shared/types";
import { Choice, Text } from "../shared/ui/field";
import { OrderDialog } from "../shared/ui/order";
import { toast, toastError } from "../shared/ui/toast";
import { ImportState } from "./import-state";
import { asked, refusedBecause, toImport, type How, type Wish } from "./import-choices";

interface Read {
  name: string;
  text: string;
  files: ChosenFiles;
  items: ReadItem[];
}

export function ImportPipelines({ onDone }: { onDone: () => void }) {
  const locked = roleReason("editor");
  const [read, setRead] = useState<Read | null>(null);
  const [carried, setCarried] = useState<File | null>(null);
  const choose = async () => {
    const file = await chooseFile(".yaml,.yml,.json,.state");
    if (!file) return;
    if (file.name.endsWith(".state")) return setCarried(file);
    try {
      setRead(await readFile(file.name, await file.text()));
    } catch (error) {
      toastError(`${file.name} was not imported`, error);
    }
  };
  return (
    <>
      <button
        type="button"
        className="button"
        disabled={!!locked}
        title={locked ?? "Import the pipelines of a YAML file"}
        onClick={() => void choose()}
      >
        <FileUp aria-hidden="true" />
        Import
      </button>
      {carried && (
        <ImportState
          file={carried}
          onClose={() => setCarried(null)}
          onDone={onDone}
          without={async (text) => {
            setRead(await readFile(carried.name, text));
            setCarried(null);
          }}
        />
      )}
      {read && <Ask read={read} onClose={() => setRead(null)} onDone={onDone} />}
    </>
  );
}

/** Asks once for the files that are not here. What still lacks one is shown, and not imported. */
async function readFile(name: string, text: string): Promise<Read> {
  const items = await post<ReadItem[]>("/documents/read-several", { text, files: {} });
  const missing = together(items);
  const files = missing.length > 0 ? ((await askFiles(missing)) ?? {}) : {};
  if (Object.keys(files).length === 0) return { name, text, files, items };
  return { name, text, files, items: await post<ReadItem[]>("/documents/read-several", { text, files }) };
}

/** Each missing file once, with the elements of all pipelines that name it. */
function together(items: readonly ReadItem[]): MissingFile[] {
  const found = new Map<string, MissingFile>();
  for (const { title, missing } of items.filter(({ refused }) => refused === null))
    for (const each of missing) {
      const elements = each.elements.map((element) => `${element} in ${title}`);
      const before = found.get(each.name)?.elements ?? [];
      found.set(each.name, { ...each, elements: [...before, ...elements] });
    }
  return [...found.values()];
}

function Ask({ read, onClose, onDone }: { read: Read; onClose: () => void; onDone: () => void }) {
  const [wishes, setWishes] = useState(() => read.items.map(asked));
  const wanted = toImport(read.items, wishes);
  const conflicts = read.items.filter(({ there, refused }) => there && refused === null);
  const change = (at: number, part: Partial<Wish>) =>
    setWishes((now) => now.map((wish, index) => (index === at ? { ...wish, ...part } : wish)));
  const run = async () => {
    const { text, files } = read;
    told(await post<ImportedPipeline[]>("/documents/import", { text, files, pipelines: wanted }), onDone);
  };
  return (
    <OrderDialog
      title={`Import from ${read.name}`}
      text="What is chosen is imported as a whole: all of it, or nothing. Drafts come in; nothing is deployed, and nothing that runs changes."
      action={wanted.length > 0 ? `Import ${plural(wanted.length, "pipeline")}` : "Import"}
      refused={refusedBecause(read.items, wishes)}
      size="l"
      run={run}
      onClose={onClose}
    >
      {conflicts.length > 1 && (
        <Choice<How>
          label={`All ${conflicts.length} that are here already`}
          value="ask"
          options={[["ask", "Choose one by one"], ...CONFLICT]}
          onChange={(how) => conflicts.forEach(({ at }) => change(at, { how }))}
        />
      )}
      <ul className="carried" aria-label="Pipelines in the file">
        {read.items.map((item, index) => (
          <li key={item.at}>
            <Item item={item} wish={wishes[index]!} change={(part) => change(index, part)} />
          </li>
        ))}
      </ul>
    </OrderDialog>
  );
}

const CONFLICT: [How, string][] = [
  ["rename", "Import as a new pipeline"],
  ["replace", "Replace the draft"],
  ["skip", "Leave out"],
];

function Item({ item, wish, change }: { item: ReadItem; wish: Wish; change: (part: Partial<Wish>) => void }) {
  const { title, name, refused, missing, there, elements } = item;
  const lacks = listed(missing.map((file) => file.name));
  const why = refused ?? (lacks && `It names files that are not here: ${lacks}. Import it again with them.`);
  return (
    <>
      <div>
        <b>{title || `The part at line ${item.line}`}</b>{" "}
        {title !== name && <span className="muted small">{name}</span>}
        {refused === null && <div className="muted small">{plural(elements, "element")}</div>}
      </div>
      {why ? (
        <span className="badge badge--warning">cannot be imported</span>
      ) : (
        <Choice<How>
          label={`What to do with ${title}`}
          value={wish.how}
          options={
            there
              ? wish.how === "ask"
                ? [["ask", "Choose"], ...CONFLICT]
                : CONFLICT
              : [
                  ["new", "Import"],
                  ["skip", "Leave out"],
                ]
          }
          onChange={(how) => change({ how })}
        />
      )}
      {why && <p className="small">{why}</p>}
      {!why && there && (
        <p className="muted small">
          {there.same
            ? `${there.title} is here already, with the same draft.`
            : `${there.title} is here already, with another draft.`}{" "}
          {wish.how === "replace" && "The draft that is here is kept as a version."}
        </p>
      )}
      {!why && wish.how === "rename" && (
        <Text
          label={`Name of the new pipeline, in place of ${title}`}
          value={wish.title}
          maxLength={TITLE_MAX}
          fault={titleFault(wish.title)}
          onChange={(next) => change({ title: next })}
        />
      )}
    </>
  );
}

/** Says what came in, and offers to undo it. */
function told(imported: readonly ImportedPipeline[], onDone: () => void): void {
  onDone();
  const undo = async () => {
    try {
      await post("/documents/undo-import", { pipelines: imported });
      toast({ tone: "done", title: "The import was undone" });
      onDone();
    } catch (error) {
      toastError("The import was not undone", error);
    }
  };
  toast({
    tone: "done",
    title: `Imported ${plural(imported.length, "pipeline")}`,
    text: listed(imported.map(({ title }) => title)),
    actions: [{ title: "Undo", run: () => void undo() }],
  });
}
