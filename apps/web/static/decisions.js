// Keeps the inbox current, and the decisions on the page of a plan: what somebody else has decided is marked, what is new
// is added at the end, so that nothing moves under a finger. The page works without it.
const live = document.getElementById("live");
const list = document.getElementById("waiting");
const shown = () => [...document.querySelectorAll("[data-keys]")];
const once = new Set(); // what was listed since this page was opened: a fresh question may not be listed yet
const keysOf = (card) => card.dataset.keys.trim().split(/\s+/);

function end(card, texts) {
  card.classList.add("over");
  for (const button of card.querySelectorAll("button")) button.disabled = true;
  const text = document.createElement("p");
  text.className = "notice over-text";
  const of = card.matches(".folded") ? `${card.querySelector("summary").textContent.trim()}: ` : "";
  text.textContent = of + (texts.join("; ") || "this has been decided, or is no longer asked.");
  (card.querySelector(":scope > .from") ?? card.lastElementChild).after(text);
  return text.textContent;
}

async function fetched(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
}

function addNew(page) {
  const known = new Set(shown().filter((card) => !card.classList.contains("over")).flatMap(keysOf));
  const fresh = [...page.querySelectorAll("#waiting > [data-keys]")].filter((card) => !keysOf(card).some((key) => known.has(key)));
  list.append(...fresh);
  document.dispatchEvent(new Event("htmx:after:swap")); // page.js tells the times in them
  return fresh.length;
}

async function take({ keys, gone, problem, count }) {
  if (problem) { live.textContent = `Not current: ${problem}`; live.classList.remove("hidden"); return; }
  const waiting = new Set(keys);
  for (const key of keys) once.add(key);
  const isLost = (key) => !waiting.has(key) && (list || once.has(key) || gone[key]);
  const said = [];
  for (const card of shown()) {
    const lost = keysOf(card).filter(isLost);
    if (card.classList.contains("over") || lost.length < keysOf(card).length) continue;
    said.push(end(card, lost.map((key) => gone[key]).filter(Boolean)));
  }
  if (list) {
    const known = new Set(shown().flatMap(keysOf));
    const page = keys.some((key) => !known.has(key)) ? await fetched(`/inbox${location.search}`) : null;
    const added = page ? addNew(page) : 0;
    if (added) said.push(`${added} new`);
    document.getElementById("nothing").hidden = keys.length > 0;
    live.textContent = [`${count} waiting, oldest first.`, ...said].join(" ");
  } else if (said.length) {
    live.textContent = said.join(" ");
  }
}

if (live?.dataset.live) {
  const source = new EventSource(live.dataset.live);
  let turn = Promise.resolve();
  source.addEventListener("waiting", (event) => { turn = turn.then(() => take(JSON.parse(event.data))); });
  source.addEventListener("error", () => { if (list) live.textContent = "Not current: the page does not answer; it is asked again."; });
  addEventListener("pagehide", () => source.close());
}

// On the page of a plan, its stream tells when a step has changed; then its decisions are read again, at most once a second.
if (list?.dataset.from) {
  let due = null;
  const read = async () => {
    due = null;
    const page = await fetched(list.dataset.from);
    if (!page) return;
    const asked = new Set([...page.querySelectorAll("[data-keys]")].flatMap(keysOf));
    for (const card of shown()) if (!card.classList.contains("over") && !keysOf(card).some((key) => asked.has(key))) end(card, []);
    if (addNew(page)) document.getElementById("to-decide").hidden = false;
  };
  document.addEventListener("steps", () => { due ??= setTimeout(read, 1000); });
}
