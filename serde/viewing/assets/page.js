"use strict";

/* What ties a page together: which model is shown, what is open and selected, keys and pointers. */

const MOST_AT_FIRST = 60;
const MOST_UNFOLDED = 1500;
const MOST_HITS = 200;
const READABLE = 0.8;

const began = performance.now();
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const stage = byId("stage");
const drawing = new Drawing(stage);

class View {
  constructor(model, number) {
    this.model = model;
    this.number = number;
    this.unfolded = new Set();
    this.layout = new Layout(model, this.unfolded);
    this.selected = -1;
    this.window = null;
    this.#openFirst();
  }

  /* Unfold from the outside on while what is shown stays few; boxes alike stay folded. */
  #openFirst() {
    const { model } = this;
    const all = model.count <= MOST_AT_FIRST / 2;
    let shown = model.children(model.root).length;
    const pending = [...model.children(model.root)];
    while (pending.length) {
      const id = pending.shift();
      if (!model.isFoldable(id)) continue;
      const inside = model.children(id);
      const repeat = model.isGroup(id) && model.group(id).kind === "repeat";
      if ((repeat && !all) || shown + inside.length > MOST_AT_FIRST) continue;
      this.unfolded.add(id);
      shown += inside.length;
      pending.push(...inside);
    }
  }
}

/* A model is shown with the operators of its file, or as Relay. */
let relay = false;
const known = new Map();

function viewOf(number) {
  const given = data.models[number];
  const key = `${number} ${relay && !!given.relay}`;
  if (!known.has(key)) known.set(key, new View(new Model(given, relay && !!given.relay), number));
  return known.get(key);
}

let views = data.models.map((_, number) => viewOf(number));
let models = views.map((each) => each.model);
let view = views[0];

function switchOperators() {
  const { number, model, selected } = view;
  const name = selected >= 0 && !model.isGroup(selected) ? model.name(selected) : "";
  relay = !relay;
  views = views.map((each) => viewOf(each.number));
  models = views.map((each) => each.model);
  byId("relay").setAttribute("aria-pressed", String(relay));
  visit(number, models[number].find(name) ?? -1);
}

const panel = new Panel(byId("panel"), (id) => go(id), (number, id) => visit(number, id), (text) => search(text), (id) => toggle(id));

// Showing.

function refresh() {
  drawing.selected = view.selected;
  drawing.show(view.layout);
}

function showPanel() {
  const other = views.length > 1 ? views[1 - view.number] : null;
  panel.show(view.model, view.selected, data.comparison, other);
}

function select(id, say = true) {
  view.selected = id;
  drawing.select(id);
  showPanel();
  if (say) announce(id);
}

function announce(id) {
  const { model } = view;
  if (id < 0) byId("said").textContent = "Nothing selected";
  else if (model.isGroup(id)) byId("said").textContent = `${model.title(id)}, ${model.group(id).size} nodes, ${view.layout.isOpen(id) ? "unfolded" : "folded"}`;
  else byId("said").textContent = [model.op(id), model.name(id), model.types(id)[0] ?? ""].join(", ");
}

/* Select something, unfolding what is around it. */
function go(id) {
  const { model, unfolded } = view;
  let opened = false;
  for (const each of model.around(id)) {
    if (unfolded.has(each)) continue;
    unfolded.add(each);
    view.layout.change(each);
    opened = true;
  }
  if (opened) refresh();
  select(id);
  drawing.reveal(id, opened);
}

function toggle(id, whole = false) {
  const { model, unfolded } = view;
  if (!model.isFoldable(id)) return;
  const before = drawing.boxes.get(id);
  if (whole) openBelow(id);
  else if (unfolded.has(id)) unfolded.delete(id);
  else unfolded.add(id);
  view.layout.change(id);
  if (view.selected >= 0 && view.selected !== id && model.isInside(view.selected, id) && !unfolded.has(id)) view.selected = id;
  refresh();
  hold(id, before);
  select(id);
  drawing.reveal(id);
}

/* Keep a box where it was in the window. */
function hold(id, before) {
  const after = drawing.boxes.get(id);
  if (!before || !after) return;
  const { scale } = drawing.window;
  drawing.window.x += (before.x + before.width / 2 - after.x - after.width / 2) * scale;
  drawing.window.y += (before.y - after.y) * scale;
  drawing.draw();
}

function openBelow(id) {
  const { model, unfolded, layout } = view;
  const pending = [id];
  let shown = drawing.boxes.size;
  while (pending.length) {
    const each = pending.shift();
    const inside = model.children(each);
    if (!inside.length || (each !== id && shown + inside.length > MOST_UNFOLDED)) continue;
    if (each !== model.root) unfolded.add(each);
    layout.change(each);
    shown += inside.length;
    pending.push(...inside);
  }
}

function foldAll() {
  view.unfolded.clear();
  view.layout.levels.clear();
  const { model } = view;
  if (view.selected >= 0) view.selected = model.around(view.selected)[0] ?? view.selected;
  refresh();
  drawing.fit(READABLE);
  showPanel();
}

/* Unfold what is selected, or else every box that is shown folded, while there are not too many. */
function unfoldLevel() {
  const { model, unfolded, layout, selected } = view;
  const within = selected >= 0 && model.isFoldable(selected) ? selected : model.root;
  const folded = [...drawing.boxes.keys()].filter((id) => model.isFoldable(id) && !unfolded.has(id) && model.isInside(id, within));
  let shown = drawing.boxes.size;
  for (const id of folded) {
    shown += model.children(id).length;
    if (shown > MOST_UNFOLDED) break;
    unfolded.add(id);
    layout.change(id);
  }
  const before = drawing.boxes.get(within);
  refresh();
  if (within === model.root) drawing.fit(READABLE);
  else hold(within, before);
}

function visit(number, id = -1) {
  view.window = { ...drawing.window };
  view = views[number];
  for (const tab of byId("names").children) {
    tab.setAttribute("aria-selected", String(Number(tab.dataset.number) === number));
  }
  refresh();
  if (view.window) {
    drawing.window = view.window;
    drawing.drawSoon();
  } else drawing.fit(READABLE);
  if (id >= 0) go(id);
  else showPanel();
  legend();
}

// Search.

let hits = [];
let hit = -1;

function search(text) {
  byId("query").value = text;
  byId("query").focus();
  find();
}

function find() {
  const box = byId("hits");
  const text = byId("query").value;
  hits = view.model.search(text);
  hit = hits.length ? 0 : -1;
  const rows = hits.slice(0, MOST_HITS).map((id, at) => {
    const row = make("li", { role: "option", id: `hit-${at}`, "aria-selected": String(at === 0) }, make("b", {}, view.model.title(id)), make("span", {}, view.model.name(id)));
    row.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      choose(at);
    });
    return row;
  });
  const count = text.trim() ? [make("li", { class: "count", role: "presentation" }, hits.length > MOST_HITS ? `${hits.length.toLocaleString("en")} found, the first ${MOST_HITS} shown` : `${hits.length} found`)] : [];
  box.replaceChildren(...count, ...rows);
  box.hidden = !text.trim();
  byId("query").setAttribute("aria-expanded", String(!box.hidden));
  pointAt();
}

function pointAt() {
  for (const row of byId("hits").querySelectorAll("[role=option]")) row.setAttribute("aria-selected", String(row.id === `hit-${hit}`));
  const row = byId(`hit-${hit}`);
  if (row) {
    byId("query").setAttribute("aria-activedescendant", row.id);
    row.scrollIntoView({ block: "nearest" });
  } else byId("query").removeAttribute("aria-activedescendant");
}

function choose(at) {
  hit = at;
  byId("hits").hidden = true;
  byId("query").setAttribute("aria-expanded", "false");
  if (hits[at] !== undefined) go(hits[at]);
}

byId("query").addEventListener("input", find);
byId("query").addEventListener("focus", () => byId("query").value.trim() && find());
byId("query").addEventListener("blur", () => {
  byId("hits").hidden = true;
});
byId("query").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const last = Math.min(hits.length, MOST_HITS) - 1;
    hit = Math.min(last, Math.max(0, hit + (event.key === "ArrowDown" ? 1 : -1)));
    pointAt();
    event.preventDefault();
  } else if (event.key === "Enter" && hit >= 0) {
    choose(hit);
  } else if (event.key === "Escape") {
    byId("hits").hidden = true;
    stage.focus();
  }
});

// Pointers.

const pointers = new Map();
let moved = 0;

stage.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || event.target.id === "map") return;
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  moved = 0;
});

stage.addEventListener("pointermove", (event) => {
  const last = pointers.get(event.pointerId);
  if (!last) return;
  const next = { x: event.clientX, y: event.clientY };
  const others = [...pointers].filter(([id]) => id !== event.pointerId);
  if (others.length) {
    const [, other] = others[0];
    const { left, top } = stage.getBoundingClientRect();
    const factor = Math.hypot(next.x - other.x, next.y - other.y) / Math.max(1, Math.hypot(last.x - other.x, last.y - other.y));
    drawing.zoom(factor, (next.x + other.x) / 2 - left, (next.y + other.y) / 2 - top);
  } else drawing.move(next.x - last.x, next.y - last.y);
  moved += Math.abs(next.x - last.x) + Math.abs(next.y - last.y);
  if (moved > 4 && !stage.hasPointerCapture(event.pointerId)) stage.setPointerCapture(event.pointerId);
  stage.classList.toggle("dragging", moved > 4);
  pointers.set(event.pointerId, next);
});

for (const name of ["pointerup", "pointercancel"]) {
  stage.addEventListener(name, (event) => {
    pointers.delete(event.pointerId);
    stage.classList.remove("dragging");
  });
}

stage.addEventListener("click", (event) => {
  if (moved > 4 || event.target.id === "map") return;
  stage.focus({ preventScroll: true });
  const target = event.target.closest("[data-id]");
  if (!target) {
    select(-1, false);
    return;
  }
  const id = Number(target.dataset.id);
  const sign = event.target.classList.contains("sign") || event.target.classList.contains("head");
  const folded = view.model.isGroup(id) && !view.layout.isOpen(id);
  if (folded || sign) toggle(id, event.shiftKey);
  else select(id);
});

stage.addEventListener("wheel", (event) => {
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? stage.clientHeight : 1;
  if (event.ctrlKey || event.metaKey) {
    const { left, top } = stage.getBoundingClientRect();
    drawing.zoom(Math.exp(-event.deltaY * unit * 0.004), event.clientX - left, event.clientY - top);
  } else if (event.shiftKey && !event.deltaX) drawing.move(-event.deltaY * unit, 0);
  else drawing.move(-event.deltaX * unit, -event.deltaY * unit);
}, { passive: false });

// Keys.

/* The box that is shown for an id: itself, or what it is folded into. */
function shownFor(id) {
  let at = id;
  while (at >= 0 && !drawing.boxes.has(at)) at = view.model.parent[at];
  return at;
}

function follow(key) {
  const { model, selected } = view;
  if (selected < 0) return step(firstBox());
  const level = model.level(selected);
  if (key === "ArrowUp" || key === "ArrowDown") {
    const up = key === "ArrowUp";
    const inside = [...(up ? level.ins : level.outs).keys()];
    const near = model.isGroup(selected)
      ? up ? inside : inside.flatMap((each) => model.readers[each]).filter((each) => !model.isInside(each, selected))
      : up ? model.operands(selected).map((each) => each.node).filter((each) => each !== undefined) : model.readers[selected];
    const boxes = near.map(shownFor).filter((each) => each >= 0 && each !== selected && !model.isInside(selected, each));
    return step(boxes.length ? boxes[0] : -1);
  }
  return step(beside(selected, key === "ArrowRight" ? 1 : -1));
}

function firstBox() {
  const boxes = [...drawing.boxes.values()].sort((a, b) => a.y - b.y || a.x - b.x);
  return boxes.length ? boxes[0].id : -1;
}

/* The nearest box to the left or right that stands at the same height. */
function beside(id, way) {
  const own = drawing.boxes.get(id);
  if (!own) return -1;
  let best = [Infinity, -1];
  for (const box of drawing.boxes.values()) {
    const apart = way > 0 ? box.x - own.x - own.width : own.x - box.x - box.width;
    if (apart >= 0 && box.y < own.y + own.height && box.y + box.height > own.y && apart < best[0]) best = [apart, box.id];
  }
  return best[1];
}

function step(id) {
  if (id < 0) return;
  select(id);
  drawing.reveal(id);
}

const KEYS = {
  "/": () => byId("query").focus(),
  "+": () => drawing.zoom(1.25),
  "=": () => drawing.zoom(1.25),
  "-": () => drawing.zoom(0.8),
  0: () => drawing.fit(),
  f: foldAll,
  u: unfoldLevel,
  d: toggleDetails,
  r: () => byId("relay").click(),
  Home: () => step(firstBox()),
  Escape: () => select(-1, false),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "INPUT") return;
  const own = event.target === stage || event.target === document.body;
  if (own && event.key.startsWith("Arrow")) follow(event.key);
  else if (own && (event.key === "Enter" || event.key === " ")) {
    if (view.selected >= 0) toggle(view.selected, event.shiftKey);
  } else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

// The bar.

function toggleDetails() {
  const shown = document.body.classList.toggle("bare");
  byId("aside").setAttribute("aria-pressed", String(!shown));
  drawing.drawSoon();
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/* Groups of operators of one colour, by that which the legend names. */
const SAME_COLOUR = { index: "shape", sequence: "shape", rotary: "attention", embedding: "attention", function: "control", vision: "image", random: "image" };
const colourGroup = (category) => SAME_COLOUR[category] ?? category;

const CATEGORY_NAMES = { linalg: "dense", native: "other", qnn: "quantised", norm: "normalisation", reduce: "reduction", conv: "convolution", pool: "pooling" };

/* The colours of the operators that there are most of, or those of verdicts. */
function legend() {
  const { model } = view;
  const place = byId("legend");
  if (data.comparison) {
    place.replaceChildren(...["agrees", "differs", "fault", "changed", "only"].map((each) => make("li", { class: `dot v-${each}` }, each === "fault" ? "at fault" : each === "changed" ? "other attributes" : each === "only" ? "only here" : each)));
    return;
  }
  const counts = new Map();
  for (let node = 0; node < model.count; node++) if (model.kind(node) === "operator" && model.category(node)) addCount(counts, colourGroup(model.category(node)));
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 8);
  place.replaceChildren(...most.map(([name]) => make("li", { class: `dot c-${name}` }, CATEGORY_NAMES[name] ?? name)));
}

byId("names").replaceChildren(...models.map((model, number) => {
  const tab = make("button", { type: "button", role: "tab", "data-number": number, "aria-selected": String(number === 0), title: `${model.heading}: ${model.format}` }, model.heading);
  tab.addEventListener("click", () => (number === view.number ? select(-1, false) : visit(number)));
  return tab;
}));
byId("fold").addEventListener("click", foldAll);
byId("unfold").addEventListener("click", unfoldLevel);
byId("in").addEventListener("click", () => drawing.zoom(1.25));
byId("out").addEventListener("click", () => drawing.zoom(0.8));
byId("fit").addEventListener("click", () => drawing.fit());
byId("aside").addEventListener("click", toggleDetails);
byId("relay").addEventListener("click", switchOperators);
byId("relay").hidden = data.models.every((each) => !each.relay);
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  drawing.map.show(drawing.boxes, drawing.extent);
});
new ResizeObserver(() => drawing.drawSoon()).observe(stage);

// On a phone the graph has all of the screen until somebody asks for details.
if (matchMedia("(max-width: 760px)").matches) toggleDetails();
refresh();
drawing.fit(READABLE);
drawing.draw();
showPanel();
legend();
document.documentElement.dataset.ready = String(Math.round(performance.now() - began));
