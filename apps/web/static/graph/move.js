// Pans and zooms a drawing: drag, two fingers, wheel, arrow keys, + and -. The page scrolls as usual until the drawing
// has the focus, so that nobody is caught in it.

const LEAST = 0.05;
const MOST = 2.5;
const LARGEST = 1.15; // of a drawing that fits
const LOWEST = 140; // pixels
const STEP = 60;
const FAR = 0.42; // below, texts cannot be read and are left out
const SLACK = 4; // pixels that a finger may move in a click

export class Moving {
  constructor(svg, plane) {
    [this.svg, this.plane] = [svg, plane];
    this.size = { width: 1, height: 1 };
    [this.x, this.y, this.scale] = [0, 0, 1];
    this.fingers = new Map();
    this.moved = false;
    svg.addEventListener("pointerdown", (event) => this.#down(event));
    svg.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, (event) => this.#up(event));
    svg.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    svg.addEventListener("click", (event) => this.moved && (event.preventDefault(), event.stopPropagation()), true);
    svg.addEventListener("dragstart", (event) => event.preventDefault());
    svg.addEventListener("keydown", (event) => this.#key(event));
  }

  get room() {
    return { width: this.svg.clientWidth || 600, height: this.svg.clientHeight || 400 };
  }

  // The room that there is at most.
  get most() {
    const kept = this.svg.style.height;
    this.svg.style.height = "";
    const found = this.room;
    this.svg.style.height = kept;
    return found;
  }

  // Gives the drawing no more height than it fills at its first view.
  shrink(least) {
    const { width, height } = this.most;
    const scale = Math.max(Math.min((width - 24) / this.size.width, LARGEST), least);
    const needed = this.size.height * scale + 48;
    this.svg.style.height = needed < height ? `${Math.max(needed, LOWEST)}px` : "";
  }

  // Shows all of the drawing.
  fit() {
    this.begin(null, 0);
  }

  // Shows all of the drawing, or its width, or, if that could not be read (`least`: how small it may get), the part of
  // it around a box; without one, its beginning.
  begin(box, least) {
    const { width, height } = this.room;
    const [across, down] = [(width - 24) / this.size.width, (height - 24) / this.size.height];
    const whole = Math.min(across, down, LARGEST);
    this.scale = Math.max(whole >= least ? whole : Math.min(across, 1), least, LEAST);
    const place = (from, long, all, room) => {
      const rest = room - all * this.scale; // negative: what cannot be in sight
      if (rest >= 24) return rest / 2;
      const middle = box ? room / 2 - (from + long / 2) * this.scale : 12;
      return Math.min(12, Math.max(rest - 12, middle));
    };
    this.x = place(box?.x, box?.width, this.size.width, width);
    this.y = place(box?.y, box?.height, this.size.height, height);
    this.draw();
  }

  // Moves, and zooms out if need be, so that a box is in sight as a whole, if it can be read then.
  frame(box, least) {
    const { width, height } = this.room;
    const whole = Math.min((width - 24) / box.width, (height - 24) / box.height);
    this.scale = Math.min(this.scale, Math.max(whole, least));
    const placed = (from, long, room) =>
      long * this.scale <= room ? room / 2 - (from + long / 2) * this.scale : 12 - from * this.scale;
    [this.x, this.y] = [placed(box.x, box.width, width), placed(box.y, box.height, height)];
    this.draw();
  }

  // Moves so that a part of the drawing is in sight.
  show(box) {
    const { width, height } = this.room;
    const [left, top] = [box.x * this.scale + this.x, box.y * this.scale + this.y];
    const [right, bottom] = [left + box.width * this.scale, top + Math.min(box.height, 60) * this.scale];
    if (left < 8 || right > width - 8) this.x += Math.max(12, width / 2 - (right - left) / 2) - left;
    if (top < 8 || bottom > height - 8) this.y += height / 2 - (bottom - top) / 2 - top;
    this.draw();
  }

  zoom(factor, at) {
    const { width, height } = this.room;
    const point = at || { x: width / 2, y: height / 2 };
    const scale = Math.min(MOST, Math.max(LEAST, this.scale * factor));
    this.x = point.x - ((point.x - this.x) * scale) / this.scale;
    this.y = point.y - ((point.y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.draw();
  }

  draw() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.plane.setAttribute("transform", `translate(${this.x.toFixed(1)} ${this.y.toFixed(1)}) scale(${this.scale.toFixed(4)})`);
      this.svg.classList.toggle("is-far", this.scale < FAR);
    });
  }

  #at(event) {
    const frame = this.svg.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  #down(event) {
    if (event.button > 0) return;
    this.fingers.set(event.pointerId, this.#at(event));
    [this.moved, this.began] = [false, this.#at(event)];
  }

  #move(event) {
    const before = this.fingers.get(event.pointerId);
    if (!before) return;
    const now = this.#at(event);
    const others = [...this.fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    if (!this.moved && Math.hypot(now.x - this.began.x, now.y - this.began.y) < SLACK) return;
    if (!this.moved) this.svg.setPointerCapture(event.pointerId);
    this.moved = true;
    this.fingers.set(event.pointerId, now);
    [this.x, this.y] = [this.x + (now.x - before.x) / (others.length + 1), this.y + (now.y - before.y) / (others.length + 1)];
    if (others.length) {
      const far = (a, b) => Math.hypot(a.x - b.x, a.y - b.y) || 1;
      const middle = { x: (now.x + others[0].x) / 2, y: (now.y + others[0].y) / 2 };
      this.zoom(far(now, others[0]) / far(before, others[0]), middle);
    }
    this.draw();
  }

  #up(event) {
    this.fingers.delete(event.pointerId);
    if (this.moved) setTimeout(() => (this.moved = false));
  }

  #wheel(event) {
    if (!event.ctrlKey && !this.svg.contains(document.activeElement)) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 30 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0015)), this.#at(event));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (moves[event.key]) {
      [this.x, this.y] = [this.x + moves[event.key][0], this.y + moves[event.key][1]];
      this.draw();
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}
