import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { compressed } from "./bundle/compress";

const entry = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  // relative, so that the bundle works below whatever prefix Django serves static files from
  base: "./",
  plugins: [react(), compressed()],
  build: {
    outDir: "dist",
    manifest: true,
    sourcemap: false,
    target: "es2022",
    // no data: addresses, so that the pages' content security policy needs none
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1200,
    rollupOptions: {
      input: {
        shell: entry("shared/shell.ts"),
        alarms: entry("monitor/alarms/page.tsx"),
        overview: entry("monitor/overview.tsx"),
        pipelines: entry("monitor/pipelines.tsx"),
        editor: entry("editor/main.tsx"),
        element: entry("editor/live/page.tsx"),
        templates: entry("monitor/templates.tsx"),
        template: entry("monitor/template.tsx"),
        files: entry("monitor/files.tsx"),
        connections: entry("monitor/connections.tsx"),
        nodes: entry("monitor/nodes.tsx"),
        node: entry("monitor/node.tsx"),
        map: entry("monitor/map.tsx"),
        policies: entry("monitor/policies.tsx"),
        events: entry("monitor/events.tsx"),
        walls: entry("walls/walls.tsx"),
        wall: entry("walls/wall.tsx"),
        "shared-wall": entry("walls/shared.tsx"),
        handover: entry("monitor/handover/page.tsx"),
      },
    },
  },
  test: {
    environment: "node",
    include: ["**/*.test.ts"],
    exclude: ["node_modules/**", "dist/**"],
    // a process of its own for each file would take four fifths of the time
    isolate: false,
    setupFiles: ["shared/tests/setup.ts"],
    // no test fails because its machine is slow: these only end one that hangs
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
