// Places the visible nodes. What is unfolded is laid out by itself and is then one box in what is around it, so that a
// block is one node to everything beside it. So dagre never has more nodes at once than the page folds steps to
// (apps/web/graph/folding.py), however many are shown; between two layouts the page answers.

import dagre from "../vendor/dagre.js";

const WIDTH = 188; // of a card, at least; cards of small plans are as wide as their texts, up to WIDEST
const WIDEST = 280;
const ROOMY = 40; // nodes up to which a plan is small
export const HEIGHT = 48;
export const TALL = 64; // of a card whose label takes two lines
export const ROOM = 66; // of a card's width, what its mark and its margins take
export const HEAD = 52; // of a group that is unfolded
const PAD = 14;
const GAP = 14;
const SIDEWAYS = { gap: 46, beside: 16 };
const DOWN = { gap: 34, beside: 22 };

// `wanted` gives the pixels that the texts of a node would take: [of its label, of what is below that].
// Returns {width, height, boxes: Map(node -> {x, y, width, height, open}), lines: [{from, to, points}]}.
export async function place(model, room, wanted) {
  const levels = model.edgesByLevel();
  const shown = model.visible();
  const texts = new Map(shown.length > ROOMY ? [] : shown.map((node) => [node, wanted(node)]));
  const sized = { ...room, texts, card: cardWidth(texts, room), shape: Math.min(2.2, Math.max(0.7, room.width / room.height)) };
  const cards = new Map(model.children(null).map((node) => [node, sizeOf(node, null, sized)]));
  const ranks = ranksOf(cards, levels.get(null) || []);
  const sideways = prefersSideways(ranks, sized);
  // Where everything is unfolded, groups get the shape with which all of them together have that of the window.
  if (model.unfolded) sized.shape = (room.width / room.height) * (sideways ? 1 / ranks.length : ranks.length);
  return level(model, null, levels, sideways, sized);
}

function cardWidth(texts, room) {
  if (room.width < 600) return WIDTH;
  const longest = Math.max(0, ...[...texts.values()].flat());
  return Math.round(Math.min(WIDEST, Math.max(WIDTH, longest + ROOM)));
}

async function level(model, owner, levels, sideways, room) {
  const nodes = model.children(owner);
  const inner = new Map();
  for (const node of nodes) {
    if (model.isOpen(node)) inner.set(node, await level(model, node, levels, sideways, room));
  }
  const sizes = new Map(nodes.map((node) => [node, sizeOf(node, inner.get(node), room)]));
  const edges = levels.get(owner) || [];
  if (!owner && inner.size) sideways = prefersSideways(ranksOf(sizes, edges), room); // what is unfolded may be large
  const tied = new Set(edges.flat());
  const bound = nodes.filter((node) => tied.has(node));
  const free = nodes.filter((node) => !tied.has(node));
  const parts = [];
  if (bound.length > ROOMY) await new Promise((resolve) => setTimeout(resolve));
  if (bound.length) parts.push(byDagre(bound, sizes, edges, sideways));
  if (free.length) parts.push(inRows(free, sizes, room, parts[0]));
  return joined(stacked(parts, sideways), inner);
}

function sizeOf(node, inside, { card, texts }) {
  if (!inside) return { width: card, height: texts.get(node)?.[0] > card - ROOM ? TALL : HEIGHT };
  return { width: Math.max(card + 30, inside.width + 2 * PAD), height: inside.height + HEAD + PAD };
}

// The sizes of the nodes by how far each is from a beginning.
function ranksOf(sizes, edges) {
  const depth = new Map([...sizes.keys()].map((node) => [node, 0]));
  const after = new Map();
  const left = new Map();
  for (const [from, to] of edges) {
    if (!after.has(from)) after.set(from, []);
    after.get(from).push(to);
    left.set(to, (left.get(to) || 0) + 1);
  }
  const ready = [...depth.keys()].filter((node) => !left.get(node));
  while (ready.length) {
    const node = ready.pop();
    for (const next of after.get(node) || []) {
      depth.set(next, Math.max(depth.get(next), depth.get(node) + 1));
      left.set(next, left.get(next) - 1);
      if (!left.get(next)) ready.push(next);
    }
  }
  const ranks = [];
  for (const [node, at] of depth) (ranks[at] ||= []).push(sizes.get(node));
  return ranks;
}

// Whether a plan reads better from left to right: compares how large the window could show it either way.
function prefersSideways(ranks, room) {
  const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);
  const along = (side, gap) => sum(ranks.map((rank) => Math.max(...rank.map((size) => size[side])) + gap));
  const beside = (side, gap) => Math.max(1, ...ranks.map((rank) => sum(rank.map((size) => size[side] + gap))));
  const across = Math.min(room.width / along("width", SIDEWAYS.gap), room.height / beside("height", SIDEWAYS.beside));
  const down = Math.min(room.width / beside("width", DOWN.beside), room.height / along("height", DOWN.gap));
  return room.width > 600 && Math.min(across, 1) > Math.min(down, 1);
}

function byDagre(nodes, sizes, edges, sideways) {
  const way = sideways ? SIDEWAYS : DOWN;
  const graph = new dagre.graphlib.Graph();
  const ranker = nodes.length > 80 ? "tight-tree" : "network-simplex";
  graph.setGraph({ rankdir: sideways ? "LR" : "TB", ranksep: way.gap, nodesep: way.beside, edgesep: 8, ranker });
  graph.setDefaultEdgeLabel(() => ({}));
  nodes.forEach((node) => graph.setNode(String(node.index), { ...sizes.get(node) }));
  edges.forEach(([from, to]) => graph.setEdge(String(from.index), String(to.index)));
  dagre.layout(graph);
  const boxes = new Map();
  for (const node of nodes) {
    const at = graph.node(String(node.index));
    boxes.set(node, { x: at.x - at.width / 2, y: at.y - at.height / 2, width: at.width, height: at.height });
  }
  const lines = edges.map(([from, to]) => ({ from, to, points: graph.edge(String(from.index), String(to.index)).points }));
  return bounded(boxes, lines);
}

// Steps that wait for nothing beside them, in rows of about the shape that there is room for.
function inRows(nodes, sizes, room, beside) {
  const area = nodes.reduce((sum, node) => sum + (sizes.get(node).width + GAP) * (sizes.get(node).height + GAP), 0);
  const widest = Math.max(beside ? beside.width : 0, Math.sqrt(area * room.shape), room.card);
  const boxes = new Map();
  let [x, y, high] = [0, 0, 0];
  for (const node of nodes) {
    const size = sizes.get(node);
    if (x && x + size.width > widest + 1) [x, y, high] = [0, y + high + GAP, 0];
    boxes.set(node, { x, y, ...size });
    x += size.width + GAP;
    high = Math.max(high, size.height);
  }
  return bounded(boxes, []);
}

function stacked(parts, sideways) {
  const boxes = new Map();
  const lines = [];
  let [width, height] = [0, 0];
  for (const part of parts) {
    const shift = height ? height + 2 * GAP : 0;
    for (const [node, box] of part.boxes) boxes.set(node, { ...box, y: box.y + shift });
    lines.push(...part.lines.map((line) => ({ ...line, points: line.points.map((at) => ({ x: at.x, y: at.y + shift })) })));
    width = Math.max(width, part.width);
    height = shift + part.height;
  }
  return { boxes, lines, width, height, sideways };
}

// The boxes and lines, moved so that the first begin at 0.
function bounded(boxes, lines) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  const take = (x, y) => {
    [left, top] = [Math.min(left, x), Math.min(top, y)];
    [right, bottom] = [Math.max(right, x), Math.max(bottom, y)];
  };
  for (const box of boxes.values()) {
    take(box.x, box.y);
    take(box.x + box.width, box.y + box.height);
  }
  for (const line of lines) for (const at of line.points) take(at.x, at.y);
  for (const box of boxes.values()) [box.x, box.y] = [box.x - left, box.y - top];
  const moved = lines.map((line) => ({ ...line, points: line.points.map((at) => ({ x: at.x - left, y: at.y - top })) }));
  return { boxes, lines: moved, width: right - left, height: bottom - top };
}

// Adds what is inside unfolded boxes, at its place in the whole.
function joined(found, inner) {
  for (const [node, inside] of inner) {
    const around = found.boxes.get(node);
    around.open = true;
    const [x, y] = [around.x + (around.width - inside.width) / 2, around.y + HEAD];
    for (const [each, box] of inside.boxes) found.boxes.set(each, { ...box, x: box.x + x, y: box.y + y });
    for (const line of inside.lines) {
      found.lines.push({ ...line, points: line.points.map((at) => ({ x: at.x + x, y: at.y + y })) });
    }
  }
  return found;
}
