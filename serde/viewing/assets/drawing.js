"use strict";

/*
 * Draws what a layout says, in SVG: only what is in the window or near it stands in the document.
 * Moving the window moves one transformation; what comes into it is added as it comes.
 */

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 300;
const SMALLEST = 0.02;
const LARGEST = 3;
const TEXT_FROM = 0.28;

function element(name, attributes = {}, ...inside) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

class Drawing {
  constructor(stage) {
    this.stage = stage;
    this.scene = document.getElementById("scene");
    this.layers = ["boxes", "edges", "nodes"].map((id) => document.getElementById(id));
    this.map = new Minimap(document.getElementById("map"), this);
    this.window = { x: 0, y: 0, scale: 1 };
    this.items = [];
    this.shown = new Map();
    this.selected = -1;
    this.waiting = false;
  }

  /* Take the boxes and edges of a layout, in coordinates of the whole picture. */
  show(layout) {
    this.layout = layout;
    this.model = layout.model;
    this.items = [];
    this.boxes = new Map();
    this.#place(this.model.root, 0, 0);
    const { width, height } = layout.level(this.model.root);
    this.extent = { width, height };
    for (const made of this.shown.values()) made.remove();
    this.shown.clear();
    this.#mark();
    this.draw();
    this.map.show(this.boxes, this.extent);
  }

  #place(id, left, top) {
    const { layout } = this;
    const level = layout.level(id);
    for (const edge of level.edges) {
      const { x, y, width, height } = edge.bounds;
      this.items.push({ kind: "edge", edge, container: id, left, top, x: x + left, y: y + top, width, height });
    }
    for (const [child, place] of level.places) {
      const { width, height } = layout.size(child);
      const open = layout.isOpen(child);
      const box = { kind: open ? "box" : "card", id: child, x: left + place.x, y: top + place.y, width, height };
      this.items.push(box);
      this.boxes.set(child, box);
      if (open) this.#place(child, box.x, box.y);
    }
  }

  /* Which edges lead to what is selected, and which from it. */
  #mark() {
    const { model, selected } = this;
    this.marks = new Map();
    if (selected < 0) return;
    const sources = new Set();
    const own = new Set();
    if (model.isGroup(selected)) {
      for (const source of model.level(selected).ins.keys()) sources.add(source);
      for (const source of model.level(selected).outs.keys()) own.add(source);
    } else {
      own.add(selected);
      for (const each of model.operands(selected)) if (each.node !== undefined) sources.add(each.node);
    }
    for (const item of this.items) {
      if (item.kind !== "edge") continue;
      const values = [...item.edge.values];
      const leaves = item.edge.to < 0;
      const inner = model.isInside(item.container, selected);
      if (!inner && values.some((v) => own.has(v))) this.marks.set(item, "after");
      else if (values.some((v) => sources.has(v)) && (leaves ? !model.isInside(selected, item.container) : model.isInside(selected, item.edge.to))) {
        this.marks.set(item, "before");
      }
    }
  }

  select(id) {
    this.selected = id;
    this.#mark();
    for (const [item, made] of this.shown) this.#paint(item, made);
  }

  /* Add what has come into the window, and remove what has left it. */
  draw() {
    const { x, y, scale } = this.window;
    const { clientWidth, clientHeight } = this.stage;
    this.scene.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    this.scene.classList.toggle("far", scale < TEXT_FROM);
    const left = (-x - MARGIN) / scale;
    const top = (-y - MARGIN) / scale;
    const right = (clientWidth - x + MARGIN) / scale;
    const bottom = (clientHeight - y + MARGIN) / scale;
    for (const item of this.items) {
      const seen = item.x <= right && item.x + item.width >= left && item.y <= bottom && item.y + item.height >= top;
      const made = this.shown.get(item);
      if (seen && !made) this.#add(item);
      else if (!seen && made) {
        made.remove();
        this.shown.delete(item);
      }
    }
    this.map.window(this.window, clientWidth, clientHeight);
  }

  /* Have every box and edge in the document while `read` looks at them, and return what it does. */
  whole(read) {
    const before = new Set(this.shown.keys());
    this.scene.classList.remove("far");
    for (const item of this.items) if (!before.has(item)) this.#add(item);
    const found = read(this.scene);
    for (const [item, made] of this.shown) {
      if (before.has(item)) continue;
      made.remove();
      this.shown.delete(item);
    }
    this.drawSoon();
    return found;
  }

  /* Draw at the next frame, once. */
  drawSoon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  #add(item) {
    const [boxes, edges, nodes] = this.layers;
    let made;
    if (item.kind === "edge") {
      made = this.#edge(item);
      edges.append(made);
    } else if (item.kind === "box") {
      made = this.#box(item);
      // A container stands below what is in it.
      const depth = this.model.depth[item.id];
      const next = [...boxes.children].find((other) => Number(other.dataset.depth) > depth);
      boxes.insertBefore(made, next ?? null);
      made.dataset.depth = depth;
    } else {
      made = this.#card(item);
      nodes.append(made);
    }
    this.shown.set(item, made);
    this.#paint(item, made);
  }

  #paint(item, made) {
    const mark = this.marks.get(item);
    made.classList.toggle("before", mark === "before");
    made.classList.toggle("after", mark === "after");
    if (item.kind !== "edge") made.classList.toggle("selected", item.id === this.selected);
  }

  #edge(item) {
    const { edge, left, top } = item;
    const made = element("g", { class: edge.values.size > 1 ? "edge several" : "edge", transform: `translate(${left} ${top})` });
    const path = element("path", { d: edge.path });
    if (edge.arrow) path.setAttribute("marker-end", "url(#arrow)");
    made.append(path);
    if (edge.label) {
      const { x, y } = edge.label;
      made.append(element("text", { x: round(x), y: round(y) + 4 }, edge.text));
    }
    return made;
  }

  #box(item) {
    const { id, x, y, width, height } = item;
    const made = element("g", { class: `box ${this.#classes(id)}`, transform: `translate(${x} ${y})`, "data-id": id });
    made.append(element("rect", { class: "frame", width, height, rx: 10 }));
    made.append(element("path", { class: "head", d: `M0 ${HEADER}V10A10 10 0 0 1 10 0H${width - 10}A10 10 0 0 1 ${width} 10V${HEADER}z` }));
    const detail = this.#detail(id);
    const room = Math.max(40, width - 50 - textWidth(detail, FONTS.text));
    made.append(element("text", { class: "sign", x: 12, y: 20 }, "−"));
    made.append(element("text", { class: "title", x: 28, y: 20 }, fitText(this.model.title(id), FONTS.title, room)));
    made.append(element("text", { class: "detail", x: width - 12, y: 20 }, detail));
    return made;
  }

  #detail(id) {
    const { model } = this;
    if (!model.isGroup(id)) return "";
    const { kind, size } = model.group(id);
    return kind === "repeat" ? `×${model.leafCount(id)}` : `${size.toLocaleString("en")} nodes`;
  }

  #card(item) {
    const { id, x, y, width, height } = item;
    const card = this.layout.card(id);
    const made = element("g", { class: `card ${card.shape} ${this.#classes(id)}`, transform: `translate(${x} ${y})`, "data-id": id });
    if (card.shape === "group") made.append(element("rect", { class: "behind", x: 4, y: 4, width, height, rx: 8 }));
    made.append(element("rect", { class: "frame", width, height, rx: card.shape === "pill" ? Math.min(18, height / 2) : 8 }));
    if (card.shape !== "pill") made.append(element("path", { class: "stripe", d: `M0 8A8 8 0 0 1 5 .6V${height - 0.6}A8 8 0 0 1 0 ${height - 8}z` }));
    const middle = card.shape === "pill";
    card.lines.forEach((line, number) => {
      const at = { class: line.font, x: middle ? width / 2 : 14, y: 18 + number * LINE };
      made.append(element("text", at, line.text));
    });
    if (card.times) this.#badge(made, card.times, width);
    else if (card.foldable) made.append(element("text", { class: "sign", x: width - 16, y: 18 }, "+"));
    return made;
  }

  #badge(made, text, width) {
    const wide = textWidth(text, FONTS.title) + 14;
    made.append(element("rect", { class: "badge", x: width - wide - 7, y: 6, width: wide, height: 19, rx: 9.5 }));
    made.append(element("text", { class: "times", x: width - 7 - wide / 2, y: 20 }, text));
  }

  #classes(id) {
    const { model } = this;
    const verdict = model.verdict(id);
    const found = verdict ? [`v-${verdict}`] : [];
    if (model.isGroup(id)) found.push(`g-${model.group(id).kind}`);
    else found.push(`k-${model.kind(id)}`, `c-${model.category(id).replace(/\W/g, "")}`);
    return found.join(" ");
  }

  // The window.

  zoom(factor, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2) {
    const { window: at } = this;
    const scale = Math.min(LARGEST, Math.max(SMALLEST, at.scale * factor));
    at.x = x - ((x - at.x) * scale) / at.scale;
    at.y = y - ((y - at.y) * scale) / at.scale;
    at.scale = scale;
    this.drawSoon();
  }

  move(dx, dy) {
    this.window.x += dx;
    this.window.y += dy;
    this.#hold();
    this.drawSoon();
  }

  /* Keep some of the picture in the window. */
  #hold() {
    const { window: at, extent, stage } = this;
    const keep = 80;
    at.x = Math.min(stage.clientWidth - keep, Math.max(keep - extent.width * at.scale, at.x));
    at.y = Math.min(stage.clientHeight - keep, Math.max(keep - extent.height * at.scale, at.y));
  }

  /* Show all of it; where it would be too small to read, its width or its beginning. */
  fit(least = SMALLEST) {
    const { extent, stage } = this;
    const { clientWidth, clientHeight } = stage;
    const whole = Math.min(clientWidth / extent.width, clientHeight / extent.height, 1);
    const scale = Math.max(whole, Math.min(least, 1));
    this.window.scale = scale;
    this.window.x = (clientWidth - extent.width * scale) / 2;
    const tall = extent.height * scale > clientHeight;
    this.window.y = tall ? 0 : Math.min(24, (clientHeight - extent.height * scale) / 2);
    if (extent.width * scale > clientWidth) this.#toFirst(scale);
    this.drawSoon();
  }

  /* Bring the first box into the middle of a window that is narrower than the picture. */
  #toFirst(scale) {
    const first = [...this.boxes.values()].filter((box) => this.model.parent[box.id] === this.model.root);
    const top = first.reduce((a, b) => (b.y < a.y ? b : a), first[0]);
    if (top) this.window.x = this.stage.clientWidth / 2 - (top.x + Math.min(top.width, 400) / 2) * scale;
    this.#hold();
  }

  /* Bring a box into the window, if it is not there. */
  reveal(id, middle = false) {
    const box = this.boxes.get(id);
    if (!box) return;
    const { window: at, stage } = this;
    const { clientWidth, clientHeight } = stage;
    if (at.scale < 0.45) {
      at.scale = 0.8;
      middle = true;
    }
    const left = box.x * at.scale + at.x;
    const top = box.y * at.scale + at.y;
    const width = Math.min(box.width * at.scale, clientWidth);
    const height = Math.min(box.height * at.scale, clientHeight);
    const pad = 40;
    if (middle) {
      at.x += clientWidth / 2 - (left + width / 2);
      at.y += Math.min(clientHeight / 2, clientHeight / 2 + height / 2 - height / 2) - (top + Math.min(height, clientHeight - 2 * pad) / 2);
    } else {
      if (left < pad) at.x += pad - left;
      else if (left + width > clientWidth - pad) at.x -= left + width - clientWidth + pad;
      if (top < pad) at.y += pad - top;
      else if (top + height > clientHeight - pad) at.y -= Math.min(top - pad, top + height - clientHeight + pad);
    }
    this.drawSoon();
  }
}

/* The whole picture in a corner, with the window on it. */
class Minimap {
  constructor(canvas, drawing) {
    this.canvas = canvas;
    this.drawing = drawing;
    const jump = (event) => {
      if (event.buttons !== 1) return;
      event.stopPropagation();
      const { left, top } = canvas.getBoundingClientRect();
      const { window: at, stage } = drawing;
      at.x = stage.clientWidth / 2 - ((event.clientX - left - this.x) / this.scale) * at.scale;
      at.y = stage.clientHeight / 2 - ((event.clientY - top - this.y) / this.scale) * at.scale;
      drawing.drawSoon();
    };
    canvas.addEventListener("pointerdown", jump);
    canvas.addEventListener("pointermove", jump);
  }

  show(boxes, extent) {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.scale = Math.min((width - 8) / extent.width, (height - 8) / extent.height);
    this.x = (width - extent.width * this.scale) / 2;
    this.y = (height - extent.height * this.scale) / 2;
    this.picture = document.createElement("canvas");
    this.picture.width = this.canvas.width = Math.round(width * ratio);
    this.picture.height = this.canvas.height = Math.round(height * ratio);
    const ink = this.picture.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const fill = style.getPropertyValue("--map-card");
    const frame = style.getPropertyValue("--map-box");
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const box of boxes.values()) {
      ink.fillStyle = box.kind === "box" ? frame : fill;
      ink.fillRect(this.x + box.x * this.scale, this.y + box.y * this.scale, Math.max(0.7, box.width * this.scale), Math.max(0.7, box.height * this.scale));
    }
    this.ratio = ratio;
    this.window(this.drawing.window, this.drawing.stage.clientWidth, this.drawing.stage.clientHeight);
  }

  window({ x, y, scale }, width, height) {
    if (!this.picture) return;
    const { extent } = this.drawing;
    const all = x >= -1 && y >= -1 && x + extent.width * scale <= width + 1 && y + extent.height * scale <= height + 1;
    this.canvas.classList.toggle("idle", all);
    const ink = this.canvas.getContext("2d");
    ink.setTransform(1, 0, 0, 1, 0, 0);
    ink.clearRect(0, 0, this.canvas.width, this.canvas.height);
    ink.drawImage(this.picture, 0, 0);
    ink.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    ink.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    ink.lineWidth = 1.5;
    const left = this.x + (-x / scale) * this.scale;
    const top = this.y + (-y / scale) * this.scale;
    ink.strokeRect(left, top, (width / scale) * this.scale, (height / scale) * this.scale);
  }
}
