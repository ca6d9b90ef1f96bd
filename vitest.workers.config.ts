/**
 * Tests that run inside workerd, with the bindings of wrangler.toml. Storage is isolated per test file.
 */
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    cloudflareTest(async () => ({
      wrangler: { configPath: "./wrangler.toml" },
      miniflare: {
        cf: false,
        bindings: {
          RUNSEAL_OPERATOR_TOKEN: "operator-token-of-the-tests",
          MASTER_KEY: "5a".repeat(32),
          TEST_MIGRATIONS: await readD1Migrations("migrations"),
        },
      },
    })),
  ],
  test: {
    name: "workers",
    include: ["test/workers/**/*.test.ts", "test/durable-objects/**/*.test.ts"],
    setupFiles: ["test/support/apply-migrations.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
