import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "pure",
          include: ["shared", "native", "cli", "sdk", "scripts"].map(
            (folder) => `test/${folder}/**/*.test.ts`,
          ),
          environment: "node",
          testTimeout: 60_000,
        },
      },
      "./vitest.workers.config.ts",
      {
        test: {
          name: "system",
          include: ["test/system/**/*.test.ts"],
          // What takes minutes whatever is asked of it runs in the long form alone: scripts/soak.ts.
          exclude: process.env.RUNSEAL_SOAK === "1" ? [] : ["test/system/prune/**"],
          environment: "node",
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
