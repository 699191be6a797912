/** `longline destroy`: removes what `longline deploy` made at Cloudflare, and nothing else. */
import type { DeployDir } from "./deploy-dir.ts";
import { checkLogin, findDatabase, findNamespace, findWorker, namespaceTitle } from "./resources.ts";
import type { Wrangler } from "./wrangler.ts";

/** One thing to be removed. */
export interface Removal {
  /** For a person. */
  what: string;
  remove(): Promise<unknown>;
}

/** What there is of a relay, in the order in which it goes: the Worker first, so that nothing is served from half a relay. */
export async function findRemovals(wrangler: Wrangler, dir: DeployDir, name: string): Promise<Removal[]> {
  await checkLogin(wrangler);
  const worker = await findWorker(wrangler, name);
  const databaseId = await findDatabase(wrangler, name);
  const namespaceId = await findNamespace(wrangler, name);
  const removals: Removal[] = [];
  if (worker.exists) {
    const what = `the Worker ${name}, with the tunnels, sessions and grants of all its devices`;
    removals.push({ what, remove: async () => await wrangler.run("delete", "--name", name, "--force") });
  }
  if (databaseId !== undefined) {
    const what = `the D1 database ${name}: devices, people, tokens, the audit`;
    removals.push({ what, remove: async () => await wrangler.run("d1", "delete", name, "--skip-confirmation") });
  }
  if (namespaceId !== undefined) {
    const what = `the KV namespace ${namespaceTitle(name)}: OAuth clients and their tokens`;
    const remove = async (): Promise<unknown> =>
      await wrangler.run("kv", "namespace", "delete", "--namespace-id", namespaceId, "--skip-confirmation");
    removals.push({ what, remove });
  }
  if ((await dir.place()) !== undefined || (await dir.ownerToken()) !== undefined) {
    removals.push({ what: `this machine's owner token for it, in ${dir.path}`, remove: async () => await dir.remove() });
  }
  return removals;
}
