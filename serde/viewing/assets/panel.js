"use strict";

/* The details beside the graph: of the model, of a node, of a group. */

function make(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") made.addEventListener("click", value);
    else made.setAttribute(key, value);
  }
  made.append(...inside.flat().filter((each) => each !== null && each !== undefined && each !== ""));
  return made;
}

const VERDICTS = {
  agrees: "agrees",
  differs: "differs",
  fault: "at fault: differs, though what it reads agrees",
  only: "only in this model",
  changed: "has other attributes in the other model",
};

class Panel {
  /* go: called with the id of what is to be shown; visit: with a model's number and an id. */
  constructor(place, go, visit, search, toggle) {
    Object.assign(this, { place, go, visit, search, toggle });
  }

  show(model, id, comparison, other) {
    Object.assign(this, { model, comparison, other });
    this.place.replaceChildren(...(id < 0 ? this.#modelParts() : model.isGroup(id) ? this.#groupParts(id) : this.#nodeParts(id)));
    this.place.scrollTop = 0;
  }

  #section(title, ...inside) {
    const kept = inside.flat().filter((each) => each);
    return kept.length ? make("section", {}, make("h3", {}, title), ...kept) : null;
  }

  #table(rows, kind = "") {
    const body = rows.map((cells) => make("tr", {}, cells.map((cell, at) => make(at ? "td" : "th", at ? {} : { scope: "row" }, cell))));
    return rows.length ? make("table", { class: kind }, make("tbody", {}, body)) : null;
  }

  #link(id, text) {
    return make("button", { type: "button", class: "link", onclick: () => this.go(id) }, text ?? this.#label(id));
  }

  #label(id) {
    const { model } = this;
    if (model.isGroup(id)) return model.title(id);
    const name = model.name(id);
    const kind = model.kind(id);
    if (kind === "input" || kind === "output") return `${kind} ${name}`;
    return name ? `${model.op(id)}  ${name}` : model.op(id);
  }

  /* So many of a list, and a button for the rest. */
  #some(items, most, draw) {
    const list = make("ul", { class: "plain" }, items.slice(0, most).map((each) => make("li", {}, draw(each))));
    if (items.length <= most) return items.length ? list : null;
    const more = make("button", { type: "button", class: "link", onclick: () => {
      more.remove();
      list.append(...items.slice(most, 2000).map((each) => make("li", {}, draw(each))));
    } }, `${(items.length - most).toLocaleString("en")} more`);
    return make("div", {}, list, more);
  }

  // A model.

  #modelParts() {
    const { model } = this;
    const roots = model.children(model.root);
    const all = [...model.below(model.root)].filter((id) => model.parent[id] === model.root || model.kind(id) === "input");
    const ports = (kind) => all.filter((id) => model.kind(id) === kind && this.#isOfMain(id));
    const row = (id) => [this.#link(id, model.name(id) || model.kind(id)), make("code", {}, model.types(id)[0] ?? "")];
    const operators = model.countOperators(model.root);
    const total = operators.reduce((sum, [, count]) => sum + count, 0);
    return [
      make("h2", {}, model.heading),
      this.#comparisonPart(),
      this.#section("Not converted", this.#issues()),
      this.#section("Model", this.#table([...model.facts, ["nodes", total.toLocaleString("en")]])),
      this.#section("As other formats", this.#table(model.routes)),
      this.#section("Notes", model.notes.map((note) => make("p", {}, note))),
      this.#section("Inputs", this.#table(ports("input").slice(0, 200).map(row))),
      this.#section("Outputs", this.#table(this.#outputs().slice(0, 200).map(row))),
      this.#section("Operators", this.#table(operators.map(([op, count]) => [
        make("button", { type: "button", class: "link", onclick: () => this.search(op) }, op),
        count.toLocaleString("en"),
      ]), "counts")),
      roots.length ? null : make("p", {}, "There is nothing in it."),
      this.#section("Keys", this.#table([
        ["arrows", "along edges, and to the box beside"], ["Enter", "fold or unfold"], ["Shift Enter", "unfold all below"], ["+  −  0", "zoom, fit"],
        ["/", "search"], ["Esc", "select nothing"], ["scroll, Ctrl scroll", "move, zoom"],
      ], "keys")),
    ].filter(Boolean);
  }

  #isOfMain(id) {
    const around = this.model.around(id);
    return around.every((each) => this.model.isGroup(each) && !["body", "function"].includes(this.model.group(each).kind));
  }

  #outputs() {
    const { model } = this;
    return [...model.below(model.root)].filter((id) => model.kind(id) === "output" && this.#isOfMain(id)).sort((a, b) => a - b);
  }

  #issues() {
    const { model } = this;
    if (!model.issues.length) return null;
    const found = new Map();
    for (const [op, node, reason, hint] of model.issues) {
      const key = `${op}\n${reason}\n${hint}`;
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(node);
    }
    return [...found].map(([key, names]) => {
      const [op, reason, hint] = key.split("\n");
      const known = names.map((name) => [name, model.find(name)]);
      return make("div", { class: "issue" }, make("strong", {}, `${op}  ×${names.length}`), make("p", {}, reason), hint ? make("p", { class: "dim" }, hint) : null,
        this.#some(known, 5, ([name, id]) => (id === undefined ? name : this.#link(id, name))));
    });
  }

  /* A cell of the comparison; a value or weight leads to its node, in this model or the other. */
  #cell(text, column) {
    if (column !== "value" && column !== "weight") return text;
    const id = this.model.find(text);
    if (id !== undefined) return this.#link(id, text);
    const there = this.other?.model.find(text);
    return there === undefined ? text : make("button", { type: "button", class: "link", onclick: () => this.visit(this.other.number, there) }, text);
  }

  #comparisonPart() {
    const { comparison } = this;
    if (!comparison) return null;
    const tables = comparison.tables.map(({ title, columns, rows, total }) => make("details", { open: "" }, make("summary", {}, `${title} (${total.toLocaleString("en")})`),
      make("table", { class: "wide" }, make("thead", {}, make("tr", {}, columns.map((each) => make("th", { scope: "col" }, each)))),
        make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map((cell, at) => make("td", {}, this.#cell(cell, columns[at])))))))));
    return this.#section("Comparison", comparison.lines.map((line) => make("p", {}, line)), tables);
  }

  // A group.

  #groupParts(id) {
    const { model } = this;
    const { title, kind, size } = model.group(id);
    const alike = model.alike(id);
    const weights = new Set();
    for (const node of model.below(id)) {
      for (const each of model.operands(node)) if (each.weight !== undefined) weights.add(each.weight);
    }
    const bytes = [...weights].reduce((sum, number) => sum + model.weight(number).bytes, 0);
    const what = { scope: "nodes of one scope of names", block: "a stretch that recurs", repeat: `${model.leafCount(id)} boxes alike`, section: "a stretch of a long row", body: "a graph inside a node", function: "a function" }[kind];
    return [
      this.#around(id),
      make("h2", {}, title),
      make("p", { class: "dim" }, what),
      model.isFoldable(id) ? make("p", {}, make("button", { type: "button", onclick: () => this.toggle(id) }, "Fold or unfold")) : null,
      this.#verdictPart(id),
      this.#section("Holds", this.#table([["nodes", size.toLocaleString("en")], ["weights", weights.size.toLocaleString("en")], ["bytes of weights", bytes.toLocaleString("en")]])),
      alike.length > 1 ? this.#section(`Alike: ${alike.length}`, this.#some(alike, 8, (each) => (each === id ? make("span", {}, `${this.#label(each)} (this)`) : this.#link(each)))) : null,
      this.#section("Reads", this.#some([...model.level(id).ins.keys()], 8, (each) => this.#withType(each))),
      this.#section("Gives", this.#some([...model.level(id).outs.keys()], 8, (each) => this.#withType(each))),
      this.#section("Operators", this.#table(model.countOperators(id).map(([op, count]) => [op, count.toLocaleString("en")]), "counts")),
    ].filter(Boolean);
  }

  #around(id) {
    const around = this.model.around(id);
    if (!around.length) return null;
    return make("nav", { "aria-label": "Around it" }, around.flatMap((each, at) => [at ? " › " : null, this.#link(each, this.model.title(each))]));
  }

  #withType(id) {
    return make("span", {}, this.#link(id), " ", make("code", {}, this.model.types(id)[0] ?? ""));
  }

  // A node.

  #nodeParts(id) {
    const { model } = this;
    const attributes = model.attributes(id);
    const operands = model.operands(id);
    const values = model.values(id);
    const own = attributes.filter((each) => !each.usual);
    const usual = attributes.filter((each) => each.usual);
    const row = (each) => [each.name, make("code", {}, each.value)];
    return [
      this.#around(id),
      make("h2", {}, model.title(id)),
      make("p", { class: "name" }, model.name(id) || "the source gives it no name"),
      model.isFoldable(id) ? make("p", {}, make("button", { type: "button", onclick: () => this.toggle(id) }, "Fold or unfold")) : null,
      this.#section("Not converted", model.nodeIssues(id).map((text) => make("p", { class: "issue" }, text))),
      this.#verdictPart(id),
      this.#section("What it does", this.#documentation(model.docs[model.op(id)])),
      this.#section("In Relay", this.#table(model.parts(id).map((each) => [each, this.#documentation(model.partDocs[each])]))),
      this.#section("Attributes", this.#table(own.map(row)), usual.length ? make("details", own.length ? {} : { open: "" }, make("summary", {}, `${usual.length} with their default`), this.#table(usual.map(row))) : null),
      this.#section("Reads", this.#table(operands.filter((each) => each.weight === undefined).map((each) => [each.label || "value", this.#operand(each)]))),
      ...operands.filter((each) => each.weight !== undefined).map((each) => this.#weightPart(each)),
      this.#section("Gives", this.#table(model.types(id).map((type, at) => [String(at), make("code", {}, type)])), values.length ? make("p", { class: "dim" }, `also called ${values.slice(0, 20).join(", ")}`) : null),
      this.#section(`Read by ${model.readers[id].length || "nothing"}`, this.#some(model.readers[id], 8, (each) => this.#link(each))),
    ].filter(Boolean);
  }

  /* The text of a docstring, with what stands between backquotes as code. */
  #documentation(text) {
    if (!text) return null;
    const parts = text.split(/(``.+?``|`[^`]+`)/).map((each) => (each.startsWith("`") ? make("code", {}, each.replaceAll("`", "")) : each));
    return make("span", {}, parts);
  }

  #operand(each) {
    const { model } = this;
    if (each.node === undefined) return make("code", {}, each.text);
    return make("span", {}, this.#link(each.node), each.result ? ` [${each.result}]` : "", " ", make("code", {}, model.types(each.node)[each.result] ?? ""));
  }

  #verdictPart(id) {
    const { model, comparison, other } = this;
    if (!comparison) return null;
    const verdict = model.verdict(id);
    const row = model.isGroup(id) ? null : model.verdicts?.[id];
    const rows = [["verdict", make("span", { class: `dot v-${verdict || "none"}` }, VERDICTS[verdict] ?? "not compared")]];
    if (row) {
      const [, distance, limit, node, name, differing] = row;
      if (differing) rows.push(["attributes", differing]);
      if (distance !== null && distance !== undefined) rows.push(["distance", `${figure(distance)} of its deviation`], ["agrees up to", figure(limit)]);
      if (node !== null && node !== undefined && node >= 0) {
        rows.push([`in ${other.model.heading}`, make("button", { type: "button", class: "link", onclick: () => this.visit(other.number, node) }, name || other.model.title(node))]);
      } else if (name) rows.push([`in ${other.model.heading}`, name]);
    }
    return this.#section("Compared", this.#table(rows));
  }

  #weightPart({ label, weight }) {
    const { model } = this;
    const { name, dtype, shape, bytes, figures } = model.weight(weight);
    const rows = [["name", name], ["type", make("code", {}, `${dtype} ${shape}`)], ["size", `${bytes.toLocaleString("en")} bytes`]];
    const note = model.weightNotes[weight];
    if (note) rows.push(["compared", make("span", { class: "dot v-differs" }, note)]);
    if (typeof figures === "string") rows.push(["values", figures]);
    if (!Array.isArray(figures)) return this.#section(`Weight: ${label}`, this.#table(rows));
    const [count, zeros, nan, infinite, low, high, mean, deviation, from, to, sampled, bins] = figures;
    if (sampled) rows.push(["values", `a sample of ${count.toLocaleString("en")}`]);
    rows.push(["min … max", `${figure(low)} … ${figure(high)}`], ["mean ± deviation", `${figure(mean)} ± ${figure(deviation)}`], ["zeros", count ? `${((100 * zeros) / count).toFixed(zeros && zeros < count ? 2 : 0)} %` : "none"]);
    if (nan || infinite) rows.push(["not finite", make("strong", { class: "bad" }, `${nan.toLocaleString("en")} NaN, ${infinite.toLocaleString("en")} infinite`)]);
    return this.#section(`Weight: ${label}`, this.#table(rows), histogram(bins, from, to));
  }
}

function figure(value) {
  if (value === null || value === undefined) return "none";
  return Number(value).toPrecision(4).replace(/\.?0+(e|$)/, "$1");
}

/* Bars of counts, and the ends of their range below. */
function histogram(bins, from, to) {
  const most = Math.max(...bins);
  if (!(most > 0)) return null;
  const width = 300;
  const height = 72;
  const step = width / bins.length;
  const bars = bins.map((count, at) => element("rect", { x: round(at * step), y: round(height - (count / most) * height), width: Math.max(0.5, round(step - 1)), height: Math.max(count ? 1 : 0, round((count / most) * height)) }));
  const picture = element("svg", { class: "bars", viewBox: `0 -2 ${width} ${height + 18}`, role: "img", "aria-label": `Histogram from ${figure(from)} to ${figure(to)}` });
  picture.append(...bars, element("path", { class: "axis", d: `M0 ${height + 0.5}H${width}` }));
  if (from < 0 && to > 0) {
    const zero = round((-from / (to - from)) * width);
    picture.append(element("path", { class: "axis", d: `M${zero} ${height}v4` }));
    if (zero > 50 && zero < width - 50) picture.append(element("text", { x: zero, y: height + 14, "text-anchor": "middle" }, "0"));
  }
  picture.append(element("text", { x: 0, y: height + 14 }, figure(from)), element("text", { x: width, y: height + 14, "text-anchor": "end" }, figure(to)));
  return picture;
}
