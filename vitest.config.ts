import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { outside } from "./test/support/outside.ts";

export default defineConfig({
  test: {
    projects: [
      async () => ({
        plugins: [
          cloudflareTest({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              // What the Worker fetches from elsewhere ends here.
              outboundService: outside,
              bindings: {
                TEST_MIGRATIONS: await readD1Migrations("./migrations"),
                LONGLINE_ROOT_KEY: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                LONGLINE_ORIGINS: "https://relay.test,http://localhost:8787",
                LONGLINE_RUNTIME: "embedded",
              },
            },
          }),
        ],
        test: {
          name: "worker",
          include: ["test/worker/**/*.test.ts"],
          setupFiles: ["./test/worker/setup.ts"],
          testTimeout: 30_000,
          // Its entry is CommonJS that requires files in ESM syntax, which only a bundler reads.
          deps: { optimizer: { ssr: { enabled: true, include: ["itty-durable"] } } },
        },
      }),
      { test: { name: "unit", environment: "node", include: ["test/unit/**/*.test.ts"] } },
      { test: { name: "cli", environment: "node", include: ["test/cli/**/*.test.ts"], testTimeout: 30_000 } },
      { test: { name: "agent", environment: "node", include: ["test/agent/**/*.test.ts"], testTimeout: 30_000 } },
      {
        test: {
          name: "browser",
          environment: "node",
          include: ["test/browser/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
      { test: { name: "chaos", environment: "node", include: ["test/chaos/**/*.test.ts"], testTimeout: 240_000 } },
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
