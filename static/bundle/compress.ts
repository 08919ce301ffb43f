import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

/** What is text; fonts (woff2) are compressed in themselves. */
const TEXT = /\.(css|js|svg)$/;
/** A smaller file fits the packets that are sent anyway. */
const BYTES_MIN = 1024;

const WAYS: readonly [string, (data: Buffer) => Promise<Buffer>][] = [
  [".gz", (data) => promisify(gzip)(data, { level: constants.Z_BEST_COMPRESSION })],
  [
    ".br",
    (data) =>
      promisify(brotliCompress)(data, {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: data.length,
        },
      }),
  ],
];

/** Writes NAME.gz and NAME.br beside the file NAME where that makes it smaller. */
async function compressFile(path: string): Promise<void> {
  const data = await readFile(path);
  if (data.length < BYTES_MIN) return;
  await Promise.all(
    WAYS.map(async ([ending, compress]) => {
      const smaller = await compress(data);
      if (smaller.length < data.length) await writeFile(path + ending, smaller);
    }),
  );
}

/** Compresses the bundle once, when it is built, as well as possible. The web process serves these files. */
export function compressed(): Plugin {
  return {
    name: "fogline-compressed",
    apply: "build",
    async writeBundle({ dir }, bundle) {
      if (this.meta.watchMode || !dir) return; // builds for development are not compressed
      const names = Object.keys(bundle).filter((name) => TEXT.test(name));
      await Promise.all(names.map((name) => compressFile(join(dir, name))));
    },
  };
}
