/** Shows a device's calls as they happen, from the event stream that the card of live calls names. */
export const LIVE_SCRIPT = `
{
  const card = document.getElementById("live-card");
  const list = document.getElementById("live-calls");
  const state = document.getElementById("live-state");
  const none = document.getElementById("live-none");
  const KEPT = 8;
  const rows = new Map();
  const words = (text) => (text ?? "").replace(/[\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]/g, "").slice(0, 200);
  const count = () => {
    none.hidden = list.children.length > 0;
    for (const old of [...list.querySelectorAll("[data-ended]")].slice(KEPT)) old.remove();
  };
  function show(call) {
    const row = document.getElementById("live-row").content.firstElementChild.cloneNode(true);
    row.dataset.call = call.id;
    row.querySelector("input").value = call.id;
    row.querySelector("[data-what]").textContent = words(call.target ?? call.method);
    row.querySelector("[data-who]").textContent = [call.label, call.client].filter(Boolean).map(words).join(" · ");
    const time = row.querySelector("time");
    time.dateTime = new Date(call.startedAt).toISOString();
    time.textContent = ago(call.startedAt);
    rows.set(call.id, row);
    list.prepend(row);
  }
  function progressed({ id, progress, total, message }) {
    const row = rows.get(id);
    if (!row) return;
    const bar = row.querySelector("progress");
    bar.hidden = false;
    if (total > 0) bar.value = progress / total;
    const said = row.querySelector("[data-said]");
    said.hidden = !message;
    said.textContent = words(message);
  }
  function ended({ id, outcome, reason, durationMs }) {
    const row = rows.get(id);
    if (!row) return;
    rows.delete(id);
    row.dataset.ended = "";
    row.querySelector("form")?.remove();
    row.querySelector("progress").hidden = true;
    const text = { ok: "succeeded", waiting: "waits for a person" }[outcome] ?? outcome;
    row.querySelector("[data-state]").textContent = text + (reason ? " (" + words(reason) + ")" : "") + " after " + durationMs + " ms";
  }
  const take = {
    open({ calls, online }) {
      state.textContent = online ? "live" : "live; the device is away";
      rows.clear();
      list.replaceChildren();
      calls.forEach(show);
    },
    began: ({ call }) => show(call),
    progress: progressed,
    ended,
    link({ online }) {
      const badge = document.querySelector("h1 .badge");
      if (["Online", "Offline"].includes(badge.textContent)) {
        badge.textContent = online ? "Online" : "Offline";
        badge.className = online ? "badge ok" : "badge bad";
      }
      state.textContent = online ? "live; the device is back" : "live; the device went away";
    },
  };
  const stream = new EventSource(card.dataset.stream);
  stream.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    take[message.type]?.(message);
    count();
  };
  stream.onerror = () => {
    state.textContent = "not live: trying again";
  };
  addEventListener("pagehide", () => stream.close());
  // Cancelling leaves the page where it is: the call's end arrives on the stream.
  list.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.target.querySelector("button");
    button.disabled = true;
    button.textContent = "Cancelling…";
    await fetch(event.target.action, { method: "POST", body: new URLSearchParams(new FormData(event.target)) });
  });
}
`;
