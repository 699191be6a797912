/** The two subjects on the official SDK: at the edge of the same tunnel, and locally without any relay. */
import { startHelper } from "./child.ts";
import { startPlainWorker } from "./plain-worker.ts";
import { cpuOf } from "./processes.ts";
import { modernCall } from "./requests.ts";
import { PAYLOAD, type Subject } from "./subject.ts";

/** `createMcpHandler` at the edge of the floor's tunnel. */
export async function startSdk(): Promise<Subject> {
  const worker = await startPlainWorker("sdk");
  const agent = await startHelper("floor-agent", [`ws://127.0.0.1:${worker.port}/tunnel/d0`]);
  const url = new URL(`http://127.0.0.1:${worker.port}/mcp/d0`);
  return {
    name: "sdk",
    call: () => modernCall(url, "none", "echo", { text: PAYLOAD }),
    pids: { workerd: worker.workerdPid, agent: agent.pid },
    cpu: () => cpuOf({ workerd: worker.workerdPid, agent: agent.pid }),
    stop: async () => {
      await agent.stop();
      await worker.stop();
    },
  };
}

/** A local Streamable HTTP server. */
export async function startDirect(): Promise<Subject> {
  const server = await startHelper("direct-server", []);
  const url = new URL(`http://127.0.0.1:${server.line}/mcp`);
  return {
    name: "direct",
    call: () => modernCall(url, "none", "echo", { text: PAYLOAD }),
    pids: { server: server.pid },
    cpu: () => cpuOf({ server: server.pid }),
    stop: async () => await server.stop(),
  };
}
