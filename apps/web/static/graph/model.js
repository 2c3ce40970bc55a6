// The graph of a plan as it is shown: which nodes are visible, and which edges are between them.
// Knows nothing of the page. The document comes from apps/web/graph/document.py; its texts are safe to show.

export const FOLD = "fold";
export const MORE = "more"; // stands for steps inside its parent that are not listed
const ROOT = -1;
const FEW = 5; // items or rounds of a loop that is open at first
const LOOPS = ["each", "repeat"];

export class Model {
  constructor(document) {
    this.version = document.version;
    this.seq = document.seq;
    this.total = document.total;
    this.edges = document.edges;
    this.unfolded = null; // the groups that were unfolded to show every step; null: not every step is shown
    this.open = new Set(); // ids of groups and blocks that are unfolded
    this.roots = [];
    this.nodes = document.nodes.map((row, index) => ({
      index, id: row[0], label: row[1], kind: row[2], tool: row[3], status: row[4], awaiting: row[5], parent: row[6],
      told: row[7] || "", counts: row[8] || null, child: row[9] || "", inside: [],
    }));
    for (const node of this.nodes) node.short = this.#shortOf(node);
    for (const node of this.nodes) (node.parent === ROOT ? this.roots : this.nodes[node.parent].inside).push(node);
    this.byId = new Map(this.nodes.map((node) => [node.id, node]));
  }

  // Keeps what was unfolded when the plan was loaded again.
  unfoldAs(other) {
    for (const id of other.open) if (this.byId.has(id)) this.open.add(id);
    if (other.unfolded) this.unfolded = [...other.unfolded, ...this.#unfoldGroups((node) => !other.byId.has(node.id))];
  }

  // The id without that of the step around it: `readings` of `station[bergen].readings`.
  #shortOf(node) {
    let around = this.nodes[node.parent];
    while (around && around.kind === FOLD) around = this.nodes[around.parent];
    const isInside = around && node.id.startsWith(around.id) && node.id.length > around.id.length;
    return isInside ? node.id.slice(around.id.length).replace(/^[.#]/, "") : node.id;
  }

  // Unfolds small blocks from the outside in, while the page has room for what is inside. A loop of more than a few
  // items is one card that counts them.
  unfoldSmall(room) {
    let left = room - this.roots.length;
    const queue = [...this.roots];
    while (queue.length) {
      const node = queue.shift();
      if (!node.inside.length || node.kind === FOLD || node.inside.length > left) continue;
      if (LOOPS.includes(node.kind) && items(node) > FEW) continue;
      this.open.add(node.id);
      left -= node.inside.length;
      queue.push(...node.inside);
    }
  }

  // The visible nodes directly inside a node, or of the plan.
  children(node) {
    return node ? node.inside : this.roots;
  }

  // All that is visible, each before what is inside it.
  visible(node = null) {
    return this.children(node).flatMap((each) => [each, ...(this.isOpen(each) ? this.visible(each) : [])]);
  }

  isOpen(node) {
    return node.inside.length > 0 && this.open.has(node.id);
  }

  toggle(node) {
    if (!this.open.delete(node.id)) this.open.add(node.id);
  }

  // Unfolds all groups, or folds those again. Returns whether every step is shown now; blocks and loops stay as they are.
  toggleAll() {
    if (this.unfolded) this.unfolded.forEach((id) => this.open.delete(id));
    this.unfolded = this.unfolded ? null : this.#unfoldGroups();
    return Boolean(this.unfolded);
  }

  #unfoldGroups(isMeant = () => true) {
    const folded = this.nodes.filter((node) => node.kind === FOLD && !this.open.has(node.id) && isMeant(node));
    for (const node of folded) this.open.add(node.id);
    return folded.map((node) => node.id);
  }

  // The edges to draw: for each node that is unfolded (null: the plan), pairs of nodes directly inside it.
  edgesByLevel() {
    const levels = new Map();
    const seen = new Set();
    for (const [from, to] of this.edges) {
      const pair = this.#beside(this.nodes[from], this.nodes[to]);
      if (!pair) continue;
      const [level, a, b] = pair;
      const key = a.index * this.nodes.length + b.index;
      if (seen.has(key)) continue;
      seen.add(key);
      if (!levels.has(level)) levels.set(level, []);
      levels.get(level).push([a, b]);
    }
    for (const [level, edges] of levels) levels.set(level, withoutImplied(edges));
    return levels;
  }

  // What stands for two steps where they are beside each other: their ways up to the node that is around both.
  #beside(from, to) {
    const up = this.#up(from);
    const down = this.#up(to);
    let depth = 0;
    while (depth < up.length && depth < down.length && up[depth] === down[depth]) depth += 1;
    if (depth >= up.length || depth >= down.length) return null;
    for (let at = 0; at < depth; at += 1) if (!this.isOpen(up[at])) return null;
    return [depth ? up[depth - 1] : null, up[depth], down[depth]];
  }

  // A node and everything around it, outermost first.
  #up(node) {
    const found = [];
    for (let at = node; at; at = at.parent === ROOT ? null : this.nodes[at.parent]) found.unshift(at);
    return found;
  }

  // Takes over changes of statuses. Returns the nodes that look different now, or null if the plan has more than is
  // known here: then it has to be loaded again.
  patch(change) {
    if (change.seq < this.seq) return [];
    this.seq = change.seq;
    const changed = new Set();
    let isKnown = true;
    for (const [id, word] of Object.entries(change.steps)) {
      const node = this.byId.get(id);
      const isSame = node && (word === "waiting" ? Boolean(node.awaiting) : node.status === word && !node.awaiting);
      if (isSame && change.all) continue;
      if (!node || node.counts || (node.inside.length && node.kind !== FOLD)) isKnown = false;
      if (!node || isSame) continue;
      node.status = word === "waiting" ? "ready" : word;
      node.awaiting = word === "waiting" ? "approval" : "";
      for (let at = node; at; at = at.parent === ROOT ? null : this.nodes[at.parent]) changed.add(at);
    }
    return isKnown ? [...changed] : null;
  }
}

// Where steps are folded, without the lines that a longer way says already: some step of nearly every group may be
// awaited by the last step, and such lines cross all others. Between steps every line is drawn.
function withoutImplied(edges) {
  if (!edges.some((edge) => edge.some((node) => node.kind === FOLD))) return edges;
  const after = new Map();
  for (const [from, to] of edges) after.set(from, [...(after.get(from) || []), to]);
  const further = new Map([...after.keys()].map((node) => [node, beyond(node, after)]));
  if ([...further].some(([node, reached]) => reached.has(node))) return edges; // a draft may wait for itself
  return edges.filter(([from, to]) => !further.get(from).has(to) || (from.kind !== FOLD && to.kind !== FOLD));
}

// What is behind a node on ways of at least two lines.
function beyond(node, after) {
  const found = new Set();
  const left = (after.get(node) || []).flatMap((each) => after.get(each) || []);
  while (left.length) {
    const each = left.pop();
    if (found.has(each)) continue;
    found.add(each);
    left.push(...(after.get(each) || []));
  }
  return found;
}

// The items or rounds of a loop that have begun, listed or not.
function items(node) {
  const counted = Object.values(node.counts || {}).reduce((sum, each) => sum + each, 0);
  return Math.max(counted, node.inside.length);
}

// How a node stands in one word, which is its CSS class and decides on its symbol.
export function standing(node) {
  if (node.kind !== FOLD) {
    if (node.awaiting) return node.awaiting === "event" || node.awaiting === "recovery" ? "waiting" : "awaiting";
    const inside = node.counts || {};
    if (node.status !== "failed" && Object.keys(inside).some((word) => word.startsWith("awaiting "))) return "awaiting";
    if (node.status === "running" && inside.failed) return "troubled";
    return node.status || "pending";
  }
  const counts = tally(node);
  for (const word of ["failed", "awaiting", "running", "denied", "unanswered"]) if (counts[word]) return word;
  const done = (counts.completed || 0) + (counts.skipped || 0);
  const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
  if (done === all) return counts.completed ? "completed" : "skipped";
  return done ? "running" : counts.blocked === all ? "blocked" : "pending";
}

// The steps inside a node by how they stand: as the plan counts them, or else those directly inside, groups resolved.
export function tally(node) {
  const found = {};
  if (node.counts) {
    for (const [word, count] of Object.entries(node.counts)) {
      const key = word.startsWith("awaiting ") ? "awaiting" : word;
      found[key] = (found[key] || 0) + count;
    }
    return found;
  }
  for (const each of node.inside) {
    if (each.kind === MORE) continue;
    const inner = each.kind === FOLD ? tally(each) : { [standing(each)]: 1 };
    for (const [word, count] of Object.entries(inner)) found[word] = (found[word] || 0) + count;
  }
  return found;
}
