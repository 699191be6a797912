/** Questions one after the other: each is shown when its turn comes, has its time, and is withdrawn with its call. */
import { POLICY } from "../../limits.ts";
import type { Answer, Asker, Question } from "./question.ts";

export class QuestionQueue {
  readonly #asker: Asker;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(asker: Asker) {
    this.#asker = asker;
  }

  /** Resolves with the answer; no answer is a no. The signal withdraws the question. Never rejects. */
  async ask(question: Question, signal: AbortSignal): Promise<Answer> {
    if (this.#waiting > POLICY.waitingQuestions) return { kind: "refused", why: "too many questions wait for the person at the device" };
    this.#waiting += 1;
    const turn = this.#last.then(async () => await this.#show(question, signal));
    this.#last = turn;
    return await turn.finally(() => {
      this.#waiting -= 1;
    });
  }

  async #show(question: Question, signal: AbortSignal): Promise<Answer> {
    const withdrawn: Answer = { kind: "refused", why: "the call ended before somebody answered" };
    if (signal.aborted) return withdrawn;
    const over = new AbortController();
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const end = (answer: Answer) => {
      resolve(answer);
      over.abort();
    };
    const withdraw = () => end(withdrawn);
    signal.addEventListener("abort", withdraw, { once: true });
    const timer = setTimeout(
      () => end({ kind: "refused", why: `nobody at the device answered within ${question.seconds} s` }),
      question.seconds * 1_000,
    );
    this.#asker.ask(question, over.signal).then(end, () => end({ kind: "refused", why: "the question could not be shown at the device" }));
    const answer = await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", withdraw);
    return answer;
  }
}
