/** What the agent uses of the language and Node 20 does not have yet. */

/** Adds it where it is missing. */
export function completeNode20(): void {
  if (!("withResolvers" in Promise)) Object.assign(Promise, { withResolvers });
}

/** `Promise.withResolvers` (ECMA-262, 2024). */
function withResolvers<T>() {
  let resolve: (value: T | PromiseLike<T>) => void = () => undefined;
  let reject: (reason?: unknown) => void = () => undefined;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
