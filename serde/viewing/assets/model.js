"use strict";

/*
 * The data of a page, as serde/viewing/payload.py writes it, and what follows from it.
 *
 * Whatever can be drawn as a box has an id: nodes have their number, groups follow them. A group
 * holds nodes and groups; a node holds groups where there are graphs inside it, such as the
 * branches of an `if`.
 */

const KINDS = ["operator", "input", "output", "unknown"];
const GROUP_KINDS = ["scope", "block", "repeat", "section", "body", "function"];
const WEIGHT = -1;

class Model {
  /* relay: whether it is shown as Relay, where its file has other operators. */
  constructor(data, relay = false) {
    const shown = relay ? data.relay : data.graph;
    this.heading = data.title;
    this.format = data.format;
    this.facts = data.facts;
    this.notes = data.notes;
    this.routes = data.routes;
    this.issues = data.issues;
    this.weightsRead = data.read;
    const { texts, attributes, nodes, groups, bodies, root } = shown;
    this.texts = texts;
    this.attributeRows = attributes;
    this.rows = nodes;
    this.groups = groups;
    this.count = nodes.length;
    this.weights = data.weights;
    this.docs = relay || !data.relay ? data.relayDocs : data.docs;
    this.partDocs = data.relayDocs;
    this.root = this.count + root;
    this.verdicts = (relay ? data.relayVerdicts : data.verdicts) ?? null;
    this.weightNotes = data.weightNotes ?? {};
    this.childLists = this.#childLists(bodies);
    this.#placeInside();
    this.#link();
    this.haystack = null;
  }

  #childLists(bodies) {
    const lists = new Map();
    this.groups.forEach((row, number) => {
      lists.set(this.count + number, row[4].map((c) => (c < 0 ? this.count - 1 - c : c)));
    });
    for (const [node, inside] of Object.entries(bodies)) {
      lists.set(Number(node), inside.map((number) => this.count + number));
    }
    return lists;
  }

  #placeInside() {
    const total = this.count + this.groups.length;
    this.parent = new Int32Array(total).fill(-1);
    this.depth = new Int32Array(total);
    const pending = [this.root];
    while (pending.length) {
      const id = pending.pop();
      for (const child of this.children(id)) {
        this.parent[child] = id;
        this.depth[child] = this.depth[id] + 1;
        pending.push(child);
      }
    }
  }

  /* Find, for each container, the edges between its children and those that cross its border. */
  #link() {
    this.levels = new Map();
    this.readers = Array.from({ length: this.count }, () => []);
    for (let node = 0; node < this.count; node++) {
      const seen = new Set();
      const operands = this.rows[node][6];
      for (let at = 0; at < operands.length; at += 3) {
        const source = operands[at + 1];
        if (source < 0 || seen.has(source)) continue;
        seen.add(source);
        this.readers[source].push(node);
        this.#linkOne(source, node);
      }
    }
  }

  #linkOne(source, target) {
    const { parent, depth } = this;
    let a = source;
    let b = target;
    while (parent[a] !== parent[b]) {
      if (parent[a] < 0 && parent[b] < 0) return;
      if (depth[a] >= depth[b]) {
        addTo(this.level(parent[a]).outs, source, a);
        a = parent[a];
      } else {
        addTo(this.level(parent[b]).ins, source, b);
        b = parent[b];
      }
      if (a === b) return;
    }
    if (a !== b) addTo(this.level(parent[a]).edges, `${a},${b}`, source);
  }

  /* Edges of a container: `edges` by "a,b", `ins` and `outs` by the node whose value crosses. */
  level(id) {
    let found = this.levels.get(id);
    if (!found) {
      found = { edges: new Map(), ins: new Map(), outs: new Map() };
      this.levels.set(id, found);
    }
    return found;
  }

  children(id) {
    return this.childLists.get(id) ?? [];
  }

  isGroup(id) {
    return id >= this.count;
  }

  isFoldable(id) {
    return this.childLists.has(id) && id !== this.root;
  }

  isInside(id, container) {
    while (id >= 0) {
      if (id === container) return true;
      id = this.parent[id];
    }
    return false;
  }

  /* The containers around an id, the outermost first, without the root. */
  around(id) {
    const found = [];
    for (let at = this.parent[id]; at >= 0 && at !== this.root; at = this.parent[at]) {
      found.unshift(at);
    }
    return found;
  }

  /* The nodes below an id, itself among them. */
  *below(id) {
    const pending = [id];
    while (pending.length) {
      const each = pending.pop();
      if (!this.isGroup(each)) yield each;
      const inside = this.children(each);
      for (let at = inside.length - 1; at >= 0; at--) pending.push(inside[at]);
    }
  }

  op(node) {
    return this.texts[this.rows[node][0]];
  }

  kind(node) {
    return KINDS[this.rows[node][1]];
  }

  category(node) {
    return this.texts[this.rows[node][2]];
  }

  name(node) {
    return this.texts[this.rows[node][3]];
  }

  types(node) {
    return this.rows[node][4].map((text) => this.texts[text]);
  }

  attributes(node) {
    const row = this.attributeRows[this.rows[node][5]];
    const found = [];
    for (let at = 0; at < row.length; at += 3) {
      found.push({ name: this.texts[row[at]], value: this.texts[row[at + 1]], usual: !!row[at + 2] });
    }
    return found;
  }

  operands(node) {
    const row = this.rows[node][6];
    const found = [];
    for (let at = 0; at < row.length; at += 3) {
      const [label, source, what] = row.slice(at, at + 3);
      const each = { label: this.texts[label] };
      if (source >= 0) found.push({ ...each, node: source, result: what });
      else if (source === WEIGHT) found.push({ ...each, weight: what });
      else found.push({ ...each, text: this.texts[what] });
    }
    return found;
  }

  /* Which of a node's results others read. */
  resultsRead(node) {
    const found = new Set();
    for (const reader of this.readers[node]) {
      for (const each of this.operands(reader)) if (each.node === node) found.add(each.result);
    }
    return found;
  }

  values(node) {
    return (this.rows[node][7] ?? []).map((text) => this.texts[text]);
  }

  nodeIssues(node) {
    return (this.rows[node][8] ?? []).map((text) => this.texts[text]);
  }

  /* The operators of Relay that a node of a file becomes. */
  parts(node) {
    return (this.rows[node][9] ?? []).map((text) => this.texts[text]);
  }

  /* The node of a name: its own, of a value that it gives, or of a weight that it reads. */
  find(name) {
    if (!this.named) {
      this.named = new Map();
      const add = (text, node) => this.named.has(text) || this.named.set(text, node);
      for (let node = 0; node < this.count; node++) add(this.name(node), node);
      for (let node = 0; node < this.count; node++) {
        for (const each of this.values(node)) add(each, node);
        for (const each of this.operands(node)) if (each.weight !== undefined) add(this.weight(each.weight).name, node);
      }
    }
    return name ? this.named.get(name) : undefined;
  }

  group(id) {
    const [title, kind, key, size] = this.groups[id - this.count];
    return { title, kind: GROUP_KINDS[kind], key, size };
  }

  weight(number) {
    const [name, dtype, shape, bytes, figures] = this.weights[number];
    return { name, dtype, shape, bytes, figures };
  }

  /* Groups of the same operators, wired alike, the group itself among them. */
  alike(id) {
    const { key, kind } = this.group(id);
    if (key < 0) return [id];
    const found = [];
    this.groups.forEach((row, number) => {
      if (row[2] === key && GROUP_KINDS[row[1]] === kind) found.push(this.count + number);
    });
    return found;
  }

  /* How many boxes alike a repeat holds, sections between them taken apart. */
  leafCount(id) {
    let count = 0;
    const pending = [...this.children(id)];
    while (pending.length) {
      const each = pending.pop();
      if (this.isGroup(each) && this.group(each).kind === "section") pending.push(...this.children(each));
      else count += 1;
    }
    return count;
  }

  title(id) {
    if (this.isGroup(id)) return this.group(id).title;
    const kind = this.kind(id);
    return kind === "input" || kind === "output" ? this.name(id) || kind : this.op(id);
  }

  countOperators(id) {
    const counts = new Map();
    for (const node of this.below(id)) {
      const kind = this.kind(node);
      if (kind !== "input" && kind !== "output") addCount(counts, this.op(node));
    }
    return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }

  /* Nodes whose operator, name, values or weights hold a text, those that begin with it first. */
  search(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    this.haystack ??= this.rows.map((_, node) => this.#searchText(node));
    const found = [];
    for (let node = 0; node < this.count; node++) {
      const at = this.haystack[node].indexOf(wanted);
      if (at >= 0) found.push([at === 0 || this.haystack[node][at - 1] === "\n" ? 0 : 1, node]);
    }
    return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, node]) => node);
  }

  #searchText(node) {
    const weights = this.operands(node)
      .filter((each) => each.weight !== undefined)
      .map((each) => this.weight(each.weight).name);
    return [this.op(node), this.name(node), ...this.values(node), ...weights].join("\n").toLowerCase();
  }

  /* The worst verdict below an id: fault, differs, agrees, or nothing where none was compared. */
  verdict(id) {
    if (!this.verdicts) return "";
    if (!this.isGroup(id) && !this.childLists.has(id)) return this.verdicts[id]?.[0] ?? "";
    this.worst ??= new Map();
    if (!this.worst.has(id)) {
      const found = new Set();
      for (const node of this.below(id)) found.add(this.verdicts[node]?.[0] ?? "");
      this.worst.set(id, ["fault", "differs", "changed", "only", "agrees"].find((each) => found.has(each)) ?? "");
    }
    return this.worst.get(id);
  }
}

function addTo(map, key, value) {
  const known = map.get(key);
  if (known) known.add(value);
  else map.set(key, new Set([value]));
}

function addCount(map, key) {
  map.set(key, (map.get(key) ?? 0) + 1);
}
