import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { build } from "vite";
import { expect, it, onTestFinished } from "vitest";
import { compressed } from "../compress";

it("lays both kinds beside what is text and large, and they hold the same", async () => {
  const root = await mkdtemp(join(tmpdir(), "fogline-bundle-"));
  onTestFinished(() => rm(root, { recursive: true }));
  const words = Array.from({ length: 400 }, (_, number) => `the ${number}th word`);
  await writeFile(join(root, "large.js"), `window.words = ${JSON.stringify(words)};`);
  await writeFile(join(root, "small.js"), "window.word = 1;");
  const input = { large: join(root, "large.js"), small: join(root, "small.js") };
  await build({
    root,
    configFile: false,
    logLevel: "silent",
    plugins: [compressed()],
    build: { outDir: "out", rollupOptions: { input, output: { entryFileNames: "[name].js" } } },
  });

  const out = join(root, "out");
  expect((await readdir(out)).sort()).toEqual(["large.js", "large.js.br", "large.js.gz", "small.js"]);
  const [plain, br, gz] = await Promise.all(
    ["large.js", "large.js.br", "large.js.gz"].map((name) => readFile(join(out, name))),
  );
  expect(brotliDecompressSync(br!)).toEqual(plain);
  expect(gunzipSync(gz!)).toEqual(plain);
  expect(br!.length).toBeLessThan(plain!.length / 2);
});
