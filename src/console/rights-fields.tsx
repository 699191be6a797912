/** Fields that pick what a grant covers and until when, and their reading: shared by sharing and editing. */
import type { OfferedTool } from "../../durable/rpc.ts";
import { isPlainName } from "../auth/oauth/choice.ts";
import { ApiError } from "../errors.ts";
import { cleanText } from "../policy/clean-text.ts";
import { access, isFull, type Rights } from "../policy/grant.ts";

const DAY_MS = 86_400_000;
/** Days of access that are offered. */
const LIFE_DAYS = [90, 365, 30, 7, 1] as const;

/** A pattern that no offered tool's own box stands for. */
function otherPatterns(rights: Rights, tools: readonly OfferedTool[]): string[] {
  const names = new Set(tools.map(({ name }) => name));
  return (rights.tools ?? []).filter((pattern) => !names.has(pattern));
}

/** What may be used: everything, or what is picked. `rights` is what holds now. */
export function RightsFields({ tools, rights }: { tools: readonly OfferedTool[] | null; rights: Rights }) {
  const all = isFull(rights);
  const offered = (tools ?? []).filter(({ name }) => isPlainName(name));
  return (
    <fieldset>
      <legend>What may be used</legend>
      <label class="box">
        <input type="radio" name="scope" value="all" checked={all} />
        <span>Everything it offers, also what is added later</span>
      </label>
      <label class="box">
        <input type="radio" name="scope" value="picked" checked={!all} />
        <span>Only what is picked here</span>
      </label>
      {offered.length === 0 ? (
        <p class="note">The device has not said which tools it has. Name them below, or come back when its agent was there.</p>
      ) : (
        <ul class="rows tools" tabindex={0} aria-label="Tools">
          {offered.map((tool) => (
            <li>
              <label class="box">
                <input type="checkbox" name="tool" value={tool.name} checked={!all && rights.tools?.includes(tool.name) === true} />
                <span>
                  <code>{cleanText(tool.name)}</code> {tool.readOnly ? <span class="badge plain">reads</span> : null}
                  {tool.destructive ? <span class="badge plain warn">can destroy</span> : null}
                  {tool.description === undefined ? null : <small class="muted"> {tool.description}</small>}
                </span>
              </label>
            </li>
          ))}
        </ul>
      )}
      <label for="patterns">More tools, by pattern</label>
      <input
        id="patterns"
        name="patterns"
        value={all ? "" : otherPatterns(rights, offered).join(", ")}
        placeholder="camera_*, !camera_delete"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        aria-describedby="patterns-hint"
      />
      <p class="note" id="patterns-hint">
        * stands for any characters, a leading ! takes a tool away.
      </p>
      <label class="box">
        <input type="checkbox" name="resources" value="yes" checked={!all && rights.resources !== undefined} />
        <span>Read its resources too</span>
      </label>
      <label class="box">
        <input type="checkbox" name="prompts" value="yes" checked={!all && rights.prompts !== undefined} />
        <span>Use its prompts too</span>
      </label>
    </fieldset>
  );
}

/** The rights that were picked. Kinds other than tools keep the patterns of `before`. Throws when nothing was picked. */
export function readRights(form: URLSearchParams, before: Rights = {}): Rights {
  if (form.get("scope") === "all") return {};
  const typed = (form.get("patterns") ?? "").split(",").map((text) => text.trim());
  const tools = [...new Set([...form.getAll("tool"), ...typed])].filter((text) => text !== "");
  const kept = (kind: "resources" | "prompts"): Partial<Rights> => (form.get(kind) === "yes" ? { [kind]: before[kind] ?? ["*"] } : {});
  const rights: Rights = { tools, ...kept("resources"), ...kept("prompts") };
  if (tools.length === 0 && rights.resources === undefined && rights.prompts === undefined)
    throw new ApiError("bad_request", "Pick at least one tool, or choose everything.");
  return rights;
}

/** Until when: days from now. */
export function LifeField({ keep }: { keep?: string }) {
  return (
    <>
      <label for="days">Until when</label>
      <select id="days" name="days">
        {keep === undefined ? null : <option value="">{keep}</option>}
        {LIFE_DAYS.map((days) => (
          <option value={String(days)}>{days === 1 ? "1 day from now" : days === 365 ? "1 year from now" : `${days} days from now`}</option>
        ))}
      </select>
    </>
  );
}

/** The life that was chosen (ms), or undefined for none. */
export function readLife(form: URLSearchParams): number | undefined {
  const days = Number(form.get("days"));
  return Number.isInteger(days) && days > 0 ? days * DAY_MS : undefined;
}

/** Calls a minute. */
export function RateField({ value }: { value: number | null }) {
  return (
    <>
      <label for="rate">Calls a minute, at most</label>
      <input
        id="rate"
        name="rate"
        type="number"
        min="1"
        inputmode="numeric"
        value={value === null ? "" : String(value)}
        placeholder="no limit"
      />
    </>
  );
}

/** The rate that was typed; null for none. */
export function readRate(form: URLSearchParams): number | null {
  const text = (form.get("rate") ?? "").trim();
  if (text === "") return null;
  const rate = Number(text);
  if (!Number.isSafeInteger(rate) || rate < 1) throw new ApiError("bad_request", "Calls a minute must be a whole number from 1, or empty.");
  return rate;
}
