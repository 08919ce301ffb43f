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
      comment: "What the views share imports none of them.",
      severity: "error",
      from: { path: layer("shared") },
      to: { path: layer("(bundle|editor|monitor|walls)") },
    },
    {
      name: "views-apart",
      comment:
        "The editor, the monitor and the walls do not import each other: what several need is in shared/.",
      severity: "error",
      from: { path: layer("(editor|monitor|walls)") },
      to: { path: layer("(bundle|editor|monitor|walls)"), pathNot: layer("$1") },
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
    includeOnly: "^(bundle|editor|monitor|shared|walls)/",
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { extensions: [".ts", ".tsx", ".d.ts", ".json", ".css"] },
  },
};
