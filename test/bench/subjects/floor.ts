/** The floor: the limit of this design on this runtime. */
import { postRequest, type Target } from "../http-connection.ts";
import { startHelper } from "./child.ts";
import { startPlainWorker } from "./plain-worker.ts";
import { cpuOf } from "./processes.ts";
import { PAYLOAD, type Subject } from "./subject.ts";

/** Bytes that the other subjects move for one small call, so that the floor moves the same. */
export interface FloorSizes {
  request: number;
  answer: number;
}

/** Starts the floor with so many devices. */
export async function startFloor(sizes: FloorSizes, devices: number): Promise<Subject> {
  const worker = await startPlainWorker("floor");
  const { port } = worker;
  const urls = Array.from({ length: devices }, (_, device) => `ws://127.0.0.1:${port}/tunnel/d${device}`);
  const agent = await startHelper("floor-agent", urls);
  const body = PAYLOAD.padEnd(sizes.request, "x");
  const post = (path: string, text: string): Target => ({ port, request: postRequest(path, port, {}, text) });
  return {
    name: "floor",
    call: (device = 0) => post(`/call/d${device}/${sizes.answer}`, body),
    events: (count) => post(`/events/d0/${count}`, body),
    image: (size) => post(`/chunks/d0/${size}`, body),
    pids: { workerd: worker.workerdPid, agent: agent.pid },
    cpu: () => cpuOf({ workerd: worker.workerdPid, agent: agent.pid }),
    stop: async () => {
      await agent.stop();
      await worker.stop();
    },
  };
}
