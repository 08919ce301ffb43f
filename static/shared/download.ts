/** Give a text to the user as a file. */
export function download(name: string, type: string, text: string): void {
  const link = window.document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
