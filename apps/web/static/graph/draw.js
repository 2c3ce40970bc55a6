// Draws a placed graph as SVG: cards, groups and lines. Texts only ever become text nodes; looks are classes of graph.css.

import { FOLD, MORE, standing, tally } from "./model.js";
import { HEAD, TALL } from "./layout.js";

// The same symbols as in the terminal and in the tables of the page.
const MARKS = {
  completed: "✓", failed: "✗", running: ">", skipped: "-", denied: "-", unanswered: "-", awaiting: "?", waiting: "…", troubled: "✗",
  ready: "·", blocked: "·", pending: "·",
};
const WORDS = { awaiting: "awaiting a decision", waiting: "awaiting", troubled: "running, with failures" };
const BAR = ["completed", "skipped", "failed", "denied", "unanswered", "running", "awaiting"];
const KINDS = {
  each: "loop", repeat: "repeat", block: "block", switch: "switch", case: "case", catch: "catch", finally: "finally",
  undo: "undo", agent: "agent", plan: "plan", task: "task",
};

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

export function make(name, attributes = {}, ...inside) {
  const found = document.createElementNS(document.querySelector("[data-graph] svg").namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  found.append(...inside);
  return found;
}

// The text, cut so that it fits; measured in the font of the page.
export function fitted(text, room, font) {
  const key = `${font}|${room}|${text}`;
  if (widths.has(key)) return widths.get(key);
  pen.font = font;
  let shown = text;
  if (pen.measureText(text).width > room) {
    let [low, high] = [0, text.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pen.measureText(`${text.slice(0, middle).trimEnd()}…`).width <= room) low = middle;
      else high = middle - 1;
    }
    shown = `${text.slice(0, low).trimEnd()}…`;
  }
  widths.set(key, shown);
  return shown;
}

// The pixels that the texts of a node take, whole: its label, and what is below that.
export function wanted(node, fonts) {
  return [[node.label, fonts.label], [subtitle(node, standing(node)), fonts.under]].map(([text, font]) => {
    pen.font = font;
    return Math.ceil(pen.measureText(text).width);
  });
}

// The words of a text that fit, and the others.
function split(text, room, font) {
  pen.font = font;
  const words = text.split(" ");
  let count = words.length;
  while (count > 1 && pen.measureText(words.slice(0, count).join(" ")).width > room) count -= 1;
  return [words.slice(0, count).join(" "), words.slice(count).join(" ")];
}

export function line(edge) {
  const points = edge.points;
  const at = (point) => `${round(point.x)} ${round(point.y)}`;
  let path = `M${at(points[0])}`;
  for (let index = 1; index < points.length - 1; index += 1) {
    const next = points[index + 1];
    const end = index === points.length - 2 ? next : { x: (points[index].x + next.x) / 2, y: (points[index].y + next.y) / 2 };
    path += `Q${at(points[index])} ${at(end)}`;
  }
  if (points.length === 2) path += `L${at(points[1])}`;
  return make("path", { d: path, class: "edge", "marker-end": "url(#graph-arrow)" });
}

function round(value) {
  return Math.round(value * 10) / 10;
}

// One node: a card, or the frame of a group that is unfolded. `links` gives the address of a step, or null.
export function card(node, box, links, fonts) {
  const group = make("g", { transform: `translate(${round(box.x)} ${round(box.y)})`, "data-node": node.index });
  return Object.assign(fill(group, node, box, links, fonts), { node });
}

// Draws the card again into the same element, which keeps its place and the focus.
export function fill(group, node, box, links, fonts) {
  const look = standing(node);
  const opens = node.inside.length > 0;
  const height = box.open ? HEAD - 4 : box.height;
  group.setAttribute("class", `node kind-${node.kind} is-${look}${box.open ? " is-open" : ""}`);
  const parts = [];
  if (opens && !box.open) parts.push(make("rect", { class: "behind", x: 5, y: 5, width: box.width, height: box.height, rx: 9 }));
  if (!box.open) {
    parts.push(make("rect", { class: "face", width: box.width, height: box.height, rx: 9 }));
    parts.push(make("rect", { class: "edge-mark", x: 0, y: 9, width: 4, height: box.height - 18, rx: 2 }));
  }
  const address = node.kind === FOLD ? null : links(node);
  const main = make(address ? "a" : "g", address ? { href: address, class: "body" } : { class: "body" });
  const wide = box.width - (opens ? 42 : 12);
  main.append(make("rect", { class: "hit", x: 1, y: 1, width: wide, height: height - 2, rx: 8 }));
  main.append(make("text", { class: "mark", x: 20, y: height / 2 + 5, "text-anchor": "middle" }, MARKS[look] || "·"));
  const under = subtitle(node, look);
  const room = wide - 36;
  const rows = !box.open && box.height === TALL ? split(node.label, room, fonts.label).filter(Boolean) : [node.label];
  const top = height / 2 + 4 - (8 * (rows.length - 1 + (under ? 1 : 0)));
  rows.forEach((row, at) => main.append(text("label", row, 36, top + 16 * at, room, fonts.label)));
  if (under) main.append(text("under", under, 36, top + 16 * rows.length, room, fonts.under));
  const name = `${node.label}: ${describe(node, look)}`;
  main.prepend(make("title", {}, name)); // what a pointer and a screen reader are told: nothing in it is cut
  parts.push(main);
  if (opens) parts.push(handle(node, box, height, address ? node.label : name));
  if ((opens || node.child) && !box.open) parts.push(...bar(node, box));
  group.replaceChildren(...parts);
  return group;
}

// The frame of a group that is unfolded; it lies below the lines.
export function frame(node, box) {
  const at = { x: round(box.x), y: round(box.y), width: round(box.width), height: round(box.height), rx: 11 };
  return make("g", { class: `node frame is-${standing(node)}` }, make("rect", { class: "face", ...at }));
}

function text(look, content, x, y, room, font) {
  return make("text", { class: look, x, y }, fitted(content, room, font));
}

// What folds and unfolds; of a group that is no step, all of the card does.
function handle(node, box, height, name) {
  const isAll = node.kind === FOLD;
  const found = make("g", { class: "handle", role: "button", tabindex: "0", "aria-expanded": String(Boolean(box.open)) });
  found.setAttribute("aria-label", isAll ? name : `${box.open ? "Fold" : "Unfold"} ${name}`);
  const area = isAll ? { x: 1, width: box.width - 2 } : { x: box.width - 41, width: 40 };
  found.append(make("rect", { class: "hit", y: 1, height: height - 2, rx: 8, ...area }));
  const [x, y] = [box.width - 21, height / 2];
  found.append(make("path", { class: "sign", d: box.open ? `M${x - 5} ${y - 2}l5 5 5 -5` : `M${x - 2} ${y - 5}l5 5 -5 5` }));
  return found;
}

// How much of what is inside is done, as a bar at the foot of the card.
function bar(node, box) {
  const counts = tally(node);
  const all = Object.values(counts).reduce((sum, each) => sum + each, 0) || 1;
  const room = box.width - 20;
  const found = [];
  let x = 10;
  for (const word of BAR) {
    if (!counts[word]) continue;
    const width = Math.max(2, (room * counts[word]) / all);
    found.push(make("rect", { class: `part is-${word}`, x: round(x), y: box.height - 6, width: round(Math.min(width, box.width - 10 - x)), height: 3 }));
    x += width;
  }
  return found.length ? [make("rect", { class: "part", x: 10, y: box.height - 6, width: room, height: 3 }), ...found] : [];
}

function subtitle(node, look) {
  if (node.kind === MORE) return "list them";
  if (node.kind === FOLD || node.kind === "each") return told(node) || node.told || node.tool;
  const kind = KINDS[node.kind];
  const isNamed = node.short === kind || node.label === node.id || node.label === node.short || `[${node.label}]` === node.short;
  const what = isNamed || ["case", "task"].includes(node.kind) ? "" : node.short;
  const parts = [node.told || (node.counts ? told(node) : ""), kind && !node.told ? kind : "", node.kind === "call" ? node.tool : "", what];
  if (look === "awaiting") return ["to decide", node.told || (node.counts ? told(node) : what)].filter(Boolean).join(" · "); // whole in any card; `describe` says the rest
  const state = WORDS[look] ? [look === "waiting" ? `awaiting ${node.awaiting}` : WORDS[look]] : [];
  return [...state, ...parts].filter(Boolean).join(" · ");
}

function told(node) {
  const counts = tally(node);
  const words = [["completed", "done"], ["running", "running"], ["failed", "failed"], ["denied", "denied"], ["unanswered", "unanswered"], ["awaiting", "to decide"], ["skipped", "skipped"]];
  return words.filter(([word]) => counts[word]).map(([word, name]) => `${counts[word].toLocaleString("en")} ${name}`).join(" · ");
}

export function describe(node, look = standing(node)) {
  if (node.kind === MORE) return "a list of the steps inside";
  const state = look === "waiting" ? `awaiting ${node.awaiting}` : WORDS[look] || (node.status || node.kind === FOLD ? look : "not started");
  const parts = [node.kind === FOLD ? "" : node.id, KINDS[node.kind] || "", node.kind === "call" ? node.tool : "", state, node.child ? node.told : told(node) || node.told];
  return parts.filter(Boolean).join(", ");
}
