/** The layers of the browser code, as import-linter checks those of the Python code: `npm run check`. */
const layer = (name) => `^${name}/`;

export default {
  forbidden: [
    {
      name: "no-circles",
      comment: "No module imports itself, directly or through others.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "shared-below-views",
      comment: "What both views share imports none of them.",
      severity: "error",
      from: { path: layer("shared") },
      to: { path: layer("(bundle|editor|monitor)") },
    },
    {
      name: "views-apart",
      comment: "The editor and the monitor do not import each other: what both need is in shared/.",
      severity: "error",
      from: { path: layer("(editor|monitor)") },
      to: { path: layer("(bundle|editor|monitor)"), pathNot: layer("$1") },
    },
    {
      name: "no-unknown-imports",
      comment: "Each import leads to a file or to a package that package.json names.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    includeOnly: "^(bundle|editor|monitor|shared)/",
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { extensions: [".ts", ".tsx", ".d.ts", ".json", ".css"] },
  },
};
