import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      async () => ({
        plugins: [
          cloudflareTest({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              bindings: {
                TEST_MIGRATIONS: await readD1Migrations("./migrations"),
                LONGLINE_ROOT_KEY: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                LONGLINE_ORIGINS: "https://relay.test,http://localhost:8787",
                LONGLINE_RUNTIME: "embedded",
              },
            },
          }),
        ],
        test: { name: "worker", include: ["test/worker/**/*.test.ts"], setupFiles: ["./test/worker/setup.ts"] },
      }),
      { test: { name: "unit", environment: "node", include: ["test/unit/**/*.test.ts"] } },
      { test: { name: "cli", environment: "node", include: ["test/cli/**/*.test.ts"] } },
      { test: { name: "agent", environment: "node", include: ["test/agent/**/*.test.ts"], testTimeout: 30_000 } },
      {
        test: {
          name: "e2e",
          environment: "node",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
