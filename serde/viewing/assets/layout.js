"use strict";

/*
 * Where things stand. Each unfolded container is laid out by dagre for itself, with boxes of known
 * size in it and a port on its border for each value that crosses; so unfolding one container lays
 * out that one and those around it, and nothing else.
 */

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';
const MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace';
const HEADER = 30;
const PADDING = 16;
const LINE = 16;
const MOST_WIDTH = 250;
const MOST_PORTS = 10;
const MOST_WEIGHTS_SHOWN = 3;

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

function textWidth(text, font) {
  const key = `${font}\n${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 50000) widths.clear();
    pen.font = font;
    width = pen.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/* A text that is at most so wide, its middle left out. */
function fitText(text, font, most) {
  if (textWidth(text, font) <= most) return text;
  let low = 1;
  let high = text.length;
  const cut = (count) => `${text.slice(0, Math.ceil(count / 2))}…${text.slice(text.length - Math.floor(count / 2))}`;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(cut(middle), font) <= most) low = middle;
    else high = middle - 1;
  }
  return cut(low);
}

const FONTS = {
  title: `600 13px ${FONT}`,
  text: `11.5px ${FONT}`,
  mono: `10.5px ${MONO}`,
};

class Layout {
  /*
   * model: what is drawn; unfolded: ids of the containers that are open.
   */
  constructor(model, unfolded) {
    this.model = model;
    this.unfolded = unfolded;
    this.cards = new Map();
    this.levels = new Map();
    this.usualType = usualDtype(model);
  }

  isOpen(id) {
    return id === this.model.root || (this.unfolded.has(id) && this.model.isFoldable(id));
  }

  /* Forget what depends on whether `id` is open. */
  change(id) {
    for (let at = id; at >= 0; at = this.model.parent[at]) this.levels.delete(at);
  }

  /* The lines of text of a closed box, and its size. */
  card(id) {
    let card = this.cards.get(id);
    if (!card) {
      card = this.model.isGroup(id) ? this.#groupCard(id) : this.#nodeCard(id);
      const widest = Math.max(...card.lines.map((line) => textWidth(line.text, FONTS[line.font]) + (line.extra ?? 0)));
      card.width = Math.ceil(Math.max(card.least, widest + 26));
      card.height = 12 + card.lines.length * LINE;
      this.cards.set(id, card);
    }
    return card;
  }

  #nodeCard(id) {
    const { model } = this;
    const kind = model.kind(id);
    if (kind === "input" || kind === "output") {
      const lines = [{ text: fitText(model.title(id), FONTS.title, MOST_WIDTH), font: "title" }];
      const type = model.types(id)[0];
      if (type && kind === "input") lines.push({ text: fitText(type, FONTS.mono, MOST_WIDTH), font: "mono" });
      return { lines, least: 60, shape: "pill" };
    }
    const lines = [{ text: fitText(model.op(id), FONTS.title, MOST_WIDTH), font: "title", extra: model.isFoldable(id) ? 20 : 0 }];
    const name = model.name(id);
    if (name) lines.push({ text: fitText(name, FONTS.text, MOST_WIDTH), font: "text" });
    const weights = model.operands(id).filter((each) => each.weight !== undefined);
    for (const each of weights.slice(0, MOST_WEIGHTS_SHOWN)) {
      const { dtype, shape } = model.weight(each.weight);
      const text = `${each.label} ${dtype} ${shape}`;
      lines.push({ text: fitText(text, FONTS.mono, MOST_WIDTH), font: "mono" });
    }
    if (weights.length > MOST_WEIGHTS_SHOWN) {
      lines.push({ text: `and ${weights.length - MOST_WEIGHTS_SHOWN} more`, font: "mono" });
    }
    return { lines, least: 84, shape: "card", foldable: model.isFoldable(id) };
  }

  #groupCard(id) {
    const { model } = this;
    const { title, kind, size } = model.group(id);
    const times = kind === "repeat" ? `×${model.leafCount(id)}` : "";
    const lines = [{ text: fitText(title, FONTS.title, MOST_WIDTH), font: "title", extra: times ? textWidth(times, FONTS.title) + 26 : 20 }];
    lines.push({ text: `${size.toLocaleString("en")} nodes`, font: "text" });
    const ops = model.countOperators(id).slice(0, 3).map(([op]) => shortOp(op)).join(" · ");
    if (ops) lines.push({ text: fitText(ops, FONTS.mono, MOST_WIDTH), font: "mono" });
    return { lines, least: 120, shape: "group", times, foldable: true };
  }

  size(id) {
    if (!this.isOpen(id)) return this.card(id);
    return this.level(id);
  }

  /* The text at an edge: the shape, and the dtype where it is not the usual one. */
  label(source) {
    const { model } = this;
    if (model.kind(source) === "input") return "";
    const types = model.types(source);
    const read = types.length < 2 ? new Set([0]) : model.resultsRead(source);
    if (read.size > 1) return `${read.size} results`;
    const type = types[[...read][0]];
    if (!type) return "";
    const [dtype, shape] = type.split(" ", 2);
    return dtype === this.usualType && shape ? shape : type;
  }

  level(id) {
    let found = this.levels.get(id);
    if (!found) {
      found = this.#layOut(id);
      this.levels.set(id, found);
    }
    return found;
  }

  #port(ports, source) {
    return ports.size > MOST_PORTS ? "all" : source;
  }

  #graph(id) {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    const many = this.model.children(id).length > 60;
    graph.setGraph({ rankdir: "TB", nodesep: 26, edgesep: 14, ranksep: many ? 30 : 36, ranker: many ? "tight-tree" : "network-simplex" });
    for (const child of this.model.children(id)) {
      const { width, height } = this.size(child);
      graph.setNode(String(child), { width, height });
    }
    return graph;
  }

  #layOut(id) {
    const { model } = this;
    const level = model.level(id);
    const graph = this.#graph(id);
    this.#addEdges(graph, level);
    this.#addPorts(graph, id, level);
    dagre.layout(graph);
    return this.#collect(graph, id);
  }

  #addEdges(graph, level) {
    const labelled = new Set();
    for (const [key, sources] of level.edges) {
      const [a, b] = key.split(",");
      const drawn = new Map();
      for (const source of sources) {
        const start = this.isOpen(+a) ? this.#port(this.model.level(+a).outs, source) : "";
        const end = this.isOpen(+b) ? this.#port(this.model.level(+b).ins, source) : "";
        addTo(drawn, `${start}>${end}`, source);
      }
      for (const [name, values] of drawn) {
        const first = values.values().next().value;
        const text = values.size > 1 ? `${values.size} values` : labelled.has(first) ? "" : this.label(first);
        if (values.size === 1) labelled.add(first);
        const shown = text && fitText(text, FONTS.mono, 170);
        const width = shown ? textWidth(shown, FONTS.mono) + 8 : 0;
        graph.setEdge(a, b, { values, text: shown, name, width, height: shown ? 14 : 0, labelpos: "c", weight: 1 }, name);
      }
    }
  }

  /* Ports hang on two nodes that are not drawn, above and below all others. */
  #addPorts(graph, id, level) {
    if (id === this.model.root) return;
    const kinds = [
      [level.ins, "top", (port, child, edge) => graph.setEdge(port, child, edge, edge.name)],
      [level.outs, "bottom", (port, child, edge) => graph.setEdge(child, port, edge, edge.name)],
    ];
    for (const [ports, side, connect] of kinds) {
      if (!ports.size) continue;
      graph.setNode(side, { width: 1, height: 1 });
      for (const [source, children] of ports) {
        const port = `${side}:${this.#port(ports, source)}`;
        if (!graph.hasNode(port)) {
          graph.setNode(port, { width: 10, height: 1 });
          if (side === "top") graph.setEdge(side, port, { weight: 40 }, "hold");
          else graph.setEdge(port, side, { weight: 40 }, "hold");
        }
        for (const child of children) this.#connectPort(graph, side, port, child, source, connect);
      }
    }
    if (!level.ins.size) return;
    for (const child of this.model.children(id)) {
      if (!graph.predecessors(String(child)).length) graph.setEdge("top", String(child), { weight: 0 }, "hold");
    }
  }

  #connectPort(graph, side, port, child, source, connect) {
    const level = this.model.level(child);
    const inner = side === "top" ? level.ins : level.outs;
    // dagre takes an empty name for none.
    const name = this.isOpen(child) ? String(this.#port(inner, source)) : "-";
    const [v, w] = side === "top" ? [port, String(child)] : [String(child), port];
    const known = graph.edge(v, w, name);
    if (known) known.values.add(source);
    else connect(port, String(child), { values: new Set([source]), text: "", name, weight: 2, port: true });
  }

  /* What dagre has found, in coordinates of the container. */
  #collect(graph, id) {
    const root = id === this.model.root;
    const children = this.model.children(id);
    const bounds = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    const include = (x, y, w = 0, h = 0) => {
      bounds.left = Math.min(bounds.left, x - w / 2);
      bounds.right = Math.max(bounds.right, x + w / 2);
      bounds.top = Math.min(bounds.top, y - h / 2);
      bounds.bottom = Math.max(bounds.bottom, y + h / 2);
    };
    for (const child of children) {
      const { x, y, width, height } = graph.node(String(child));
      include(x, y, width, height);
    }
    const edges = graph.edges().filter((e) => e.name !== "hold");
    for (const e of edges) {
      const edge = graph.edge(e);
      for (const { x } of edge.points) include(x, bounds.top);
      if (edge.text) include(edge.x, edge.y, edge.width, edge.height);
    }
    if (!children.length) include(0, 0, 80, 10);
    const head = root ? PADDING : HEADER + PADDING;
    const level = this.model.level(id);
    const room = { top: level.ins.size && !root ? 12 : 0, bottom: level.outs.size && !root ? 12 : 0 };
    const least = root ? 0 : textWidth(this.model.title(id), FONTS.title) + 130;
    const width = Math.max(bounds.right - bounds.left + 2 * PADDING, Math.min(least, 420));
    const dx = (width - (bounds.right - bounds.left)) / 2 - bounds.left;
    const dy = head + room.top - bounds.top;
    const height = bounds.bottom - bounds.top + head + room.top + room.bottom + PADDING;
    const found = { width: Math.ceil(width), height: Math.ceil(height), places: new Map(), edges: [], ins: new Map(), outs: new Map() };
    for (const child of children) {
      const { x, y, width: w, height: h } = graph.node(String(child));
      found.places.set(child, { x: Math.round(x + dx - w / 2), y: Math.round(y + dy - h / 2) });
    }
    for (const name of graph.nodes()) {
      const [side, port] = name.split(":");
      if (port === undefined) continue;
      found[side === "top" ? "ins" : "outs"].set(port, graph.node(name).x + dx);
    }
    for (const e of edges) found.edges.push(this.#edge(graph, e, found, dx, dy));
    this.#spread(found);
    for (const edge of found.edges) finishEdge(edge);
    return found;
  }

  #edge(graph, e, found, dx, dy) {
    const { points, values, text, x, y, width, name } = graph.edge(e);
    const moved = points.map((p) => ({ x: p.x + dx, y: p.y + dy }));
    const edge = { from: portId(e.v), to: portId(e.w), values, text, points: moved };
    if (text) edge.label = { x: x + dx, y: y + dy, width };
    const [start, end] = e.v.includes(":") ? ["", name] : e.w.includes(":") ? [name, ""] : name.split(">");
    edge.first = this.#end(edge.from, e.v, found, start, "outs");
    edge.last = this.#end(edge.to, e.w, found, end, "ins");
    edge.arrow = edge.to >= 0 && !this.isOpen(edge.to);
    return edge;
  }

  /* Where an edge ends at a box or port; `free` where it may be moved along the border. */
  #end(id, name, found, port, side) {
    if (id < 0) {
      const [border, key] = name.split(":");
      return border === "top"
        ? { x: found.ins.get(key), y: HEADER }
        : { x: found.outs.get(key), y: found.height };
    }
    const place = found.places.get(id);
    const size = this.size(id);
    const y = side === "outs" ? place.y + size.height : place.y;
    const inner = this.isOpen(id) ? this.level(id)[side].get(port) : undefined;
    if (inner !== undefined) return { x: place.x + inner, y };
    return { x: place.x + size.width / 2, y, free: id, room: size.width - 30 };
  }

  /* Give edges that arrive at one closed box places of their own. */
  #spread(found) {
    for (const [key, near] of [["last", (e) => e.points.at(-2)], ["first", (e) => e.points[1]]]) {
      const at = new Map();
      for (const edge of found.edges) {
        if (edge[key].free === undefined) continue;
        const list = at.get(edge[key].free) ?? [];
        at.set(edge[key].free, [...list, edge]);
      }
      for (const list of at.values()) {
        if (key === "first" && new Set(list.flatMap((e) => [...e.values])).size < 2) continue;
        list.sort((a, b) => near(a).x - near(b).x);
        const gap = Math.min(18, list[0][key].room / list.length);
        list.forEach((edge, place) => {
          edge[key].x += (place - (list.length - 1) / 2) * gap;
        });
      }
    }
  }
}

function portId(name) {
  return name.includes(":") ? -1 : Number(name);
}

/* Make the path of an edge: from point to point, upright at each. */
function finishEdge(edge) {
  const { points, first, last } = edge;
  const inner = points.slice(1, -1).filter((p) => p.y > first.y && p.y < last.y);
  const all = [first, ...inner, last];
  let path = `M${round(all[0].x)} ${round(all[0].y)}`;
  for (let at = 1; at < all.length; at++) {
    const [p, q] = [all[at - 1], all[at]];
    const middle = round((p.y + q.y) / 2);
    path += Math.abs(p.x - q.x) < 0.5 ? `V${round(q.y)}` : `C${round(p.x)} ${middle} ${round(q.x)} ${middle} ${round(q.x)} ${round(q.y)}`;
  }
  edge.path = path;
  edge.bounds = {
    x: Math.min(...all.map((p) => p.x)),
    y: first.y,
    width: Math.max(...all.map((p) => p.x)) - Math.min(...all.map((p) => p.x)),
    height: last.y - first.y,
  };
  delete edge.points;
}

function round(value) {
  return Math.round(value * 10) / 10;
}

function shortOp(op) {
  return op.replace(/^(nn|serde|image|vision)\./, "");
}

/* The dtype of most values, which labels leave out. */
function usualDtype(model) {
  const counts = new Map();
  for (let node = 0; node < model.count; node++) {
    for (const type of model.types(node)) if (type) addCount(counts, type.split(" ", 1)[0]);
  }
  let best = ["", 0];
  for (const each of counts) if (each[1] > best[1]) best = each;
  return best[0];
}
