/**
 * The scripts of the pages: small, written by hand, sent under the page's nonce. A page reads without them; they keep
 * ages current, copy, and show calls as they happen. None contains `</` or anything from a request.
 */

/** Of a device that never connected: looks, a few times a minute and only while the page is seen, until its agent is there. */
export const WAIT_SCRIPT = `
{
  const look = document.getElementById("waiting").dataset.look;
  const EVERY_MS = 3000;
  setInterval(async () => {
    if (document.hidden) return;
    const answer = await fetch(look).catch(() => null);
    if (answer?.ok && (await answer.json()).online) location.reload();
  }, EVERY_MS);
}
`;

/** Of every page: ages that go on, copy buttons, the question before a form that says `data-confirm`. */
export const COMMON = `
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
function ago(at) {
  const seconds = Math.round((at - Date.now()) / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS[3];
  return Math.abs(seconds) < 2 ? "just now" : words.format(Math.trunc(seconds / size), unit);
}
function keepAges() {
  for (const time of document.querySelectorAll("time[data-age]")) time.textContent = ago(Date.parse(time.dateTime));
}
keepAges();
setInterval(keepAges, 1000);
if (navigator.clipboard) for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
`;
