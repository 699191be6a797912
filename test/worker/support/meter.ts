/** Counts what a platform would bill for at one device's object. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { Stub } from "./fake-agent.ts";

/** Counts since the meter was put in. */
export interface Meter {
  objectRows: number;
  databaseRows: number;
  messages: number;
}

interface Counted {
  meta: { rows_written: number };
}

/** Puts a meter on an object and on D1. It goes with the object's memory; D1's is taken off by `restore`. */
export async function meterOf(stub: Stub): Promise<Meter & { restore(): void }> {
  const meter = { objectRows: 0, databaseRows: 0, messages: 0, restore: countDatabase((rows) => (meter.databaseRows += rows)) };
  await runInDurableObject(stub, (instance, state) => {
    const { sql } = state.storage;
    const exec: typeof sql.exec = sql.exec.bind(sql);
    sql.exec = ((...args: Parameters<typeof exec>) => {
      const cursor = exec(...args);
      // A statement has written what it writes when it has been read to its end.
      queueMicrotask(() => (meter.objectRows += cursor.rowsWritten));
      return cursor;
    }) as typeof sql.exec;
    // SAFETY: the handler of DeviceTunnel.
    const object = instance as unknown as { webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> };
    const handle = object.webSocketMessage.bind(object);
    object.webSocketMessage = async (socket, message) => {
      meter.messages += 1;
      await handle(socket, message);
    };
  });
  return meter;
}

/** Counts the rows of every statement on D1 until the returned function is called. */
function countDatabase(count: (rows: number) => void): () => void {
  const { DB } = env;
  const batch = DB.batch.bind(DB);
  const prepare = DB.prepare.bind(DB);
  DB.batch = (async (statements: D1PreparedStatement[]) => {
    const results = await batch(statements);
    for (const result of results) count((result as unknown as Counted).meta.rows_written);
    return results;
  }) as typeof DB.batch;
  DB.prepare = (sql: string) => counting(prepare(sql), count);
  return () => {
    DB.batch = batch;
    DB.prepare = prepare;
  };
}

/** The same statement, counted when it is run by itself. */
function counting(statement: D1PreparedStatement, count: (rows: number) => void): D1PreparedStatement {
  const bind = statement.bind.bind(statement);
  const run = statement.run.bind(statement);
  statement.bind = (...values: unknown[]) => counting(bind(...values), count);
  statement.run = (async () => {
    const result = await run();
    count((result as unknown as Counted).meta.rows_written);
    return result;
  }) as typeof statement.run;
  return statement;
}
