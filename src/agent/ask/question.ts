/** A question to the person at the device: may this call run? What is shown is cleaned; what answers is a word. */
import { randomInt } from "node:crypto";
import { POLICY, TEXT } from "../../limits.ts";
import type { Caller } from "../../tunnel/frames.ts";
import { cleanText } from "../clean-text.ts";

export interface Question {
  caller: Caller;
  method: string;
  target: string | undefined;
  /** Of the call, as JSON text. */
  argumentsText: string;
  /** s until the answer is no. */
  seconds: number;
  /** Typing it allows the call. Another one each time, so that an answer never meets a question it was not meant for. */
  word: string;
}

/** How a question ended. */
export type Answer = { kind: "allowed" } | { kind: "refused"; why: string };

/** A way to ask. One question at a time; the signal takes it off the screen, and its result is not looked at then. */
export interface Asker {
  ask(question: Question, signal: AbortSignal): Promise<Answer>;
}

/** Short, unlike each other, and typed without thinking about the keyboard. */
const WORDS = [
  "apple",
  "bridge",
  "candle",
  "desert",
  "engine",
  "forest",
  "garden",
  "hammer",
  "island",
  "jacket",
  "kitten",
  "ladder",
  "mirror",
  "needle",
  "orange",
  "pepper",
  "rabbit",
  "silver",
  "tunnel",
  "violin",
  "window",
  "yellow",
] as const;

/** A word for one question. */
export function askWord(): string {
  return WORDS[randomInt(WORDS.length)] ?? WORDS[0];
}

/** True when what was typed is the word; blanks and case do not count. */
export function isTheWord(question: Question, typed: string): boolean {
  return typed.trim().toLowerCase() === question.word;
}

/** The question as lines of cleaned text: who, what, with which arguments. */
export function questionLines(question: Question): string[] {
  const { caller, method, target } = question;
  const what =
    method === "tools/call"
      ? `the tool ${cleanText(target ?? "", TEXT.label)}`
      : `${cleanText(method, TEXT.label)} ${cleanText(target ?? "", TEXT.message)}`;
  return [
    `${cleanText(caller.label, TEXT.label)} (grant ${cleanText(caller.grant, TEXT.label)}, member ${cleanText(caller.member, TEXT.label)}) wants to run ${what.trim()}`,
    `with ${shownArguments(question.argumentsText)}`,
  ];
}

/** Characters that could change how the rest looks are shown as escapes; what is left out is counted. */
function shownArguments(json: string): string {
  const visible = json.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (char) =>
    [...Array(char.length).keys()].map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
  const shown = cleanText(visible.slice(0, POLICY.shownArguments), POLICY.shownArguments);
  const left = visible.length - POLICY.shownArguments;
  return left <= 0 ? shown : `${shown} … and ${left} characters more that are not shown`;
}
