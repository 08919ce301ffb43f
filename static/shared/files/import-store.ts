/** The file whose import is open, and what the dialog shows of it. */
import { create } from "zustand";

interface Opened {
  /** id of the file; null while the dialog is closed */
  file: string | null;
  /** what follows when the file is imported, or imported again as another one */
  taken: ((reference: string) => void) | null;
}

export const useImport = create<Opened>(() => ({ file: null, taken: null }));

/** Opens the import of a file. `taken` gets the reference of the table that it makes. */
export const openImport = (file: string, taken: ((reference: string) => void) | null = null): void =>
  useImport.setState({ file, taken });

export const closeImport = (): void => useImport.setState({ file: null, taken: null });
