// What pages do beyond htmx: times in the reader's own zone, told anew as they grow older.
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const absolute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const [clock, calendar] = [undefined, "medium"].map((dateStyle) => new Intl.DateTimeFormat("en-GB", { dateStyle, timeStyle: "short" }));

// After "since" and "until" comes a time of day, with the day unless it is today; elsewhere, how long ago it was.
function words(time, moment) {
  if (time.dataset.kind === "clock") {
    return (moment.toDateString() === new Date().toDateString() ? clock : calendar).format(moment);
  }
  const seconds = (moment - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS[3];
  return relative.format(Math.round(seconds / length), unit);
}

function tellTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    const text = words(time, moment);
    if (time.textContent !== text) time.textContent = text;
    time.title ||= absolute.format(moment);
  }
}

tellTimes();
setInterval(tellTimes, 10_000);
document.addEventListener("htmx:after:swap", tellTimes);

// The page's own server: say so when it is away. htmx connects again by itself, with the number of the last message.
const offline = document.getElementById("offline");
document.addEventListener("htmx:sse:error", () => { offline.hidden = false; });
document.addEventListener("htmx:sse:after:connection", () => { offline.hidden = true; });

// What is unfolded inside a block or loop is read again when the step has changed, at most every two seconds.
const waiting = new Set();
document.addEventListener("steps", (event) => {
  const { steps } = JSON.parse(event.detail.data);
  for (const details of document.querySelectorAll("details[data-inside][open]")) {
    const id = details.dataset.inside;
    if (!(id in steps) || waiting.has(id)) continue;
    waiting.add(id);
    setTimeout(() => { waiting.delete(id); htmx.trigger(details.querySelector("[hx-get]"), "refresh"); }, 2000);
  }
});

document.addEventListener("toggle", (event) => { // it does not bubble: heard on its way down
  if (!event.target.open || !event.target.matches("details[data-inside]:not([data-read])")) return;
  event.target.dataset.read = "";
  htmx.trigger(event.target.querySelector("[hx-get]"), "refresh");
}, true);

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]")) { document.getElementById("drawer").replaceChildren(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.getElementById("drawer")?.replaceChildren();
});

// Logs: keep the end in view, unless the reader has turned that off.
const output = document.getElementById("output");
if (output) {
  new MutationObserver(() => {
    if (document.getElementById("follow").checked) output.lastElementChild?.scrollIntoView({ block: "end" });
  }).observe(output, { childList: true });
}
