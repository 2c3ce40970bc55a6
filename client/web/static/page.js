// What pages do beyond htmx: times in the reader's own zone, told anew as they grow older.
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const absolute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

function tellTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    const seconds = (moment - Date.now()) / 1000;
    const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS[3];
    const text = relative.format(Math.round(seconds / length), unit);
    if (time.textContent !== text) time.textContent = text;
    time.title ||= absolute.format(moment);
  }
}

tellTimes();
setInterval(tellTimes, 10_000);
document.addEventListener("htmx:after:swap", tellTimes);
