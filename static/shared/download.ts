/** Files that the user is given, and files that the user chooses. */

/** Give a text to the user as a file. */
export function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  downloadFrom(address, name);
  URL.revokeObjectURL(address);
}

/** Give what lies at an address to the user as a file. */
export function downloadFrom(address: string, name: string): void {
  const link = window.document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

/** The file that the user chooses; null if the user cancels. */
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
