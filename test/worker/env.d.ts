import type { D1Migration } from "cloudflare:test";
import type { Env as RelayEnv } from "../../src/env.ts";
import type * as worker from "../../src/worker.ts";

declare global {
  namespace Cloudflare {
    interface Env extends RelayEnv {
      TEST_MIGRATIONS: D1Migration[];
    }
    interface GlobalProps {
      mainModule: typeof worker;
    }
  }
}
