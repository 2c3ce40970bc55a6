// The live graph of a plan. Finds every <section data-graph="/plans/ID/graph.json"> of the page and draws into it.
//
//   data-steps  the address of the plan's steps: that of a step is this, a slash, and its id, encoded
//   data-drawer a CSS selector: a step is loaded there (by htmx, if the page has it), not on a page of its own
//
// Changes come as the DOM event `steps`, which the page's reader of server-sent events dispatches: detail.data is the JSON
// of {"seq": N, "steps": {id: status}}; a step that awaits something has the status `waiting`.

import { MORE, Model, standing } from "./model.js";
import { place } from "./layout.js";
import { card, fill, frame, line, make, wanted } from "./draw.js";
import { Moving } from "./move.js";

const READABLE = 0.87; // the scale at which the smallest text has 10 pixels; a plan opens no smaller, and is panned
const SHOWN_FIRST = ["awaiting", "failed", "troubled", "running"]; // what a plan too big for the window opens at
const FAILED = "The graph could not be drawn. The list of steps below says the same.";
const SMALL = 40; // blocks are open at first while no more nodes than this are visible
const PATIENCE = 1500; // milliseconds before a plan whose steps changed is loaded again

class Graph {
  constructor(section) {
    this.section = section;
    this.svg = section.querySelector("svg");
    this.said = section.querySelector("[data-said]");
    this.plane = make("g");
    this.svg.append(arrow(), this.plane);
    this.moving = new Moving(this.svg, this.plane);
    this.drawn = new Map();
    this.svg.addEventListener("click", (event) => this.#click(event));
    this.svg.addEventListener("keydown", (event) => this.#key(event));
    this.svg.addEventListener("focusin", (event) => this.#focus(event));
    for (const name of ["pointerover", "focusin"]) this.svg.addEventListener(name, (event) => this.#near(event));
    for (const button of section.querySelectorAll("[data-do]")) button.addEventListener("click", () => this.#do(button));
    new ResizeObserver(() => this.#resized()).observe(this.svg);
  }

  async load() {
    // The first one is what the page has preloaded; a plan that did not change since is not sent again.
    const asked = this.tag ? { headers: { "If-None-Match": this.tag }, cache: "no-store" } : {};
    const answer = await fetch(this.section.dataset.graph, asked).catch(() => null); // its server is away
    if (answer?.status === 304) return;
    if (!answer?.ok) return this.#say(`The graph could not be loaded${answer ? ` (${answer.status})` : ""}; the next change tries again.`);
    const before = this.model;
    this.model = new Model(await answer.json());
    this.tag = answer.headers.get("ETag");
    this.#say("");
    if (before) this.model.unfoldAs(before);
    else this.model.unfoldSmall(SMALL);
    await this.render(!before);
  }

  // Lays out and draws everything that is visible. Only the last call counts if several are under way.
  async render(isFirst = false, focus = null) {
    const turn = (this.turn = (this.turn || 0) + 1);
    this.section.classList.add("is-busy");
    const fonts = this.#fonts();
    const placed = await place(this.model, this.moving.most, (node) => wanted(node, fonts)).finally(() => {
      if (turn === this.turn) this.section.classList.remove("is-busy");
    });
    if (turn !== this.turn) return;
    this.placed = placed;
    this.moving.size = { width: placed.width, height: placed.height };
    this.moving.shrink(READABLE);
    const lines = make("g", { "aria-hidden": "true" }, ...placed.lines.map((edge) => Object.assign(line(edge), { edge })));
    this.drawn = new Map();
    const cards = make("g");
    for (const [node, box] of placed.boxes) this.drawn.set(node, cards.appendChild(card(node, box, this.#links, fonts)));
    this.frames = new Map();
    const frames = make("g", { "aria-hidden": "true" }); // below the lines, and those below the cards
    for (const [node, box] of placed.boxes) if (box.open) this.frames.set(node, frames.appendChild(frame(node, box)));
    this.plane.replaceChildren(frames, lines, cards);
    this.edges = [...lines.children];
    if (isFirst) this.#begin();
    if (focus) this.#refocus(focus);
    this.moving.draw();
    this.section.dispatchEvent(new CustomEvent("graph-drawn", { bubbles: true, detail: { nodes: this.drawn.size } }));
  }

  patch(change) {
    if (!this.model) return;
    const changed = this.model.patch(change);
    for (const node of changed || []) {
      const element = this.drawn.get(node);
      if (!element) continue;
      this.frames.get(node)?.setAttribute("class", `node frame is-${standing(node)}`);
      const held = element.contains(document.activeElement) && document.activeElement.getAttribute("class");
      fill(element, node, this.placed.boxes.get(node), this.#links, this.#fonts());
      if (held) element.querySelector(`.${held.split(" ")[0]}`)?.focus({ preventScroll: true });
    }
    if (!changed) this.#later();
  }

  #later() {
    this.waiting ||= setTimeout(() => {
      this.waiting = 0;
      this.safely(this.load());
    }, PATIENCE);
  }

  // What a person is told if something unforeseen goes wrong; the browser's console has the rest.
  safely(work) {
    return work.catch((error) => {
      console.error(error);
      this.#say(FAILED);
    });
  }

  #links = (node) => {
    const base = this.section.dataset.steps;
    if (node.child) return `/plans/${encodeURIComponent(node.child)}`;
    if (node.kind === MORE) return `${base}/../inside/${encodeURIComponent(this.model.nodes[node.parent].id)}?whole=1`;
    const isStep = base && !["case", "task"].includes(node.kind) && !/ \d+$/.test(node.id);
    return isStep && (node.status || node.kind === "call") ? `${base}/${encodeURIComponent(node.id)}` : null;
  };

  #fonts() {
    const family = getComputedStyle(this.svg).fontFamily;
    return { label: `600 13px ${family}`, under: `11.5px ${family}` };
  }

  // The first view: the whole plan if it can be read then; else as large as can be read, at what awaits a decision.
  #begin() {
    const closed = [...this.placed.boxes].filter(([, box]) => !box.open);
    const at = (look) => closed.find(([node]) => standing(node) === look);
    const [, wanted] = SHOWN_FIRST.map(at).find(Boolean) || [];
    this.moving.begin(wanted, READABLE);
  }

  #click(event) {
    const node = event.target.closest("[data-node]")?.node;
    if (!node) return;
    if (event.target.closest(".handle")) this.#toggle(node);
    else if (event.target.closest("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey) this.#open(event, node);
  }

  #key(event) {
    const handle = event.target.closest(".handle");
    if (handle && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      this.#toggle(handle.closest("[data-node]").node);
    } else if (event.key === "Escape") document.activeElement.blur();
  }

  #toggle(node) {
    this.model.toggle(node);
    this.safely(this.render(false, { node, part: ".handle" }));
  }

  // A step is shown in the page's drawer if it has one; otherwise the link leads to the step's own page.
  #open(event, node) {
    const asked = new CustomEvent("graph-open", { bubbles: true, cancelable: true, detail: { step: node.id, address: this.#links(node) } });
    if (!this.section.dispatchEvent(asked)) return event.preventDefault();
    const drawer = this.section.dataset.drawer;
    if (node.kind === MORE || node.child || !drawer || !window.htmx || !document.querySelector(drawer)) return undefined;
    event.preventDefault();
    return window.htmx.ajax("GET", `${this.#links(node)}?drawer=1`, { target: drawer, swap: "innerHTML" });
  }

  #focus(event) {
    const node = event.target.closest("[data-node]")?.node;
    if (node && event.target.matches(":focus-visible")) this.moving.show(this.placed.boxes.get(node));
  }

  #near(event) {
    const node = event.target.closest("[data-node]")?.node;
    if (node === this.close) return;
    this.close = node;
    for (const element of this.edges || []) {
      const { from, to } = element.edge;
      element.classList.toggle("is-near", Boolean(node) && (from === node || to === node));
    }
  }

  #refocus({ node, part }) {
    const element = this.drawn.get(node);
    if (!element) return;
    const box = this.placed.boxes.get(node);
    if (box.open) this.moving.frame(box, READABLE);
    else this.moving.show(box);
    element.querySelector(part)?.focus({ preventScroll: true });
  }

  async #do(button) {
    const what = button.dataset.do;
    if (what === "in") this.moving.zoom(1.3);
    else if (what === "out") this.moving.zoom(1 / 1.3);
    else if (what === "fit") this.moving.fit();
    else if (what === "all") {
      const isAll = this.model.toggleAll();
      button.setAttribute("aria-pressed", String(isAll));
      this.#say(isAll ? `Laying out ${this.model.total.toLocaleString("en")} steps…` : "");
      await this.safely(this.render().then(() => this.#say("")));
      this.moving.fit();
    }
  }

  #say(text) {
    if (this.said) this.said.textContent = text;
  }

  #resized() {
    const { width } = this.moving.room;
    if (this.model && this.width && Math.abs(width - this.width) > 80) this.safely(this.render(true));
    this.width = width;
  }
}

function arrow() {
  const head = make("path", { d: "M0 0L7 3.5L0 7z", class: "arrow" });
  return make("defs", {}, make("marker", { id: "graph-arrow", markerWidth: 7, markerHeight: 7, refX: 6.5, refY: 3.5, orient: "auto" }, head));
}

function start(section) {
  if (section.graph) return;
  const graph = (section.graph = new Graph(section));
  section.classList.add("is-ready");
  graph.safely(graph.load());
  document.addEventListener("steps", (event) => graph.patch(JSON.parse(event.detail.data)));
}

document.querySelectorAll("[data-graph]").forEach(start);
