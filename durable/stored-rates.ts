/** Table `rates`: when a capped grant made its calls of the last minute. */
import { z } from "zod";
import type { RateStore } from "./call-rates.ts";

/** Calls of one minute that are kept; a cap above this is not worth more memory. */
const MAX_CALLS = 10_000;
const Calls = z.array(z.number());

/** The counts of an object's storage. */
export function storedRates(sql: SqlStorage): RateStore {
  return {
    load: (grant) => {
      const [row] = sql.exec<{ calls: string }>("SELECT calls FROM rates WHERE grant_id = ?", grant).toArray();
      return row === undefined ? [] : Calls.parse(JSON.parse(row.calls));
    },
    save: (grant, calls) => {
      if (calls.length === 0) sql.exec("DELETE FROM rates WHERE grant_id = ?", grant);
      else sql.exec("INSERT OR REPLACE INTO rates (grant_id, calls) VALUES (?, ?)", grant, JSON.stringify(calls.slice(-MAX_CALLS)));
    },
  };
}
