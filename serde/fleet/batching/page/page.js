// The table of all models: searched, sorted and shown a page at a time. Names come from files, so
// that everything is put in as text.
"use strict";

const PAGE = 100;
const data = JSON.parse(document.getElementById("data").textContent);
const at = Object.fromEntries(data.columns.map((name, place) => [name, place]));
const view = { found: data.rows, first: 0, sort: null, descending: false, operator: null, open: new Set() };
const elements = Object.fromEntries(
  ["search", "status", "verdict", "chosen", "count", "previous", "next", "models"].map((id) => [
    id,
    document.getElementById(id),
  ]),
);
const body = elements.models.tBodies[0];
const heads = [...elements.models.tHead.querySelectorAll("th[data-column]")];

function make(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function sizeText(bytes) {
  if (!bytes) return "";
  let size = bytes;
  for (const unit of ["B", "kB", "MB"]) {
    if (size < 1000) return (unit === "B" ? size : size.toFixed(1)) + " " + unit;
    size /= 1000;
  }
  return size.toFixed(1) + " GB";
}

function secondsText(seconds) {
  return seconds ? seconds.toFixed(seconds < 10 ? 2 : 1) + " s" : "";
}

function figureText(figure) {
  return typeof figure === "number" ? figure.toPrecision(3) : String(figure);
}

const haystacks = new Map();
function haystack(row) {
  let text = haystacks.get(row);
  if (text === undefined) {
    const operators = row[at.gaps].map(([gap]) => data.gaps[gap].op);
    const shown = [row[at.name], row[at.status], row[at.error], row[at.target], ...operators];
    text = shown.join("\n").toLowerCase();
    haystacks.set(row, text);
  }
  return text;
}

function lacks(row, [op, way]) {
  return row[at.gaps].some(([gap]) => data.gaps[gap].op === op && data.gaps[gap].way === way);
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}

function find() {
  const words = elements.search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const [status, verdict] = [elements.status.value, elements.verdict.value];
  view.found = data.rows.filter(
    (row) =>
      (!status || row[at.status] === status) &&
      (!verdict || row[at.verdict] === verdict) &&
      (!view.operator || lacks(row, view.operator)) &&
      words.every((word) => haystack(row).includes(word)),
  );
  if (view.sort !== null) {
    const column = at[view.sort];
    const sign = view.descending ? -1 : 1;
    view.found.sort((a, b) => sign * compare(a[column], b[column]));
  }
  view.first = 0;
  show();
}

function modelRow(row) {
  const made = make("tr");
  const name = make("td", undefined, "name");
  const button = make("button", row[at.name], "link");
  button.type = "button";
  button.setAttribute("aria-expanded", String(view.open.has(row)));
  button.addEventListener("click", () => toggle(row, made, button));
  name.append(button);
  const status = make("td");
  status.append(make("span", row[at.status], "dot " + data.classes[row[at.status]]));
  made.append(
    name,
    status,
    make("td", row[at.verdict] === "not checked" ? "" : row[at.verdict]),
    make("td", secondsText(row[at.seconds]), "right"),
    make("td", sizeText(row[at.memory]), "right minor"),
    make("td", sizeText(row[at.bytes_read]), "right minor"),
    make("td", sizeText(row[at.bytes_written]), "right minor"),
    make("td", row[at.nodes] === null ? "" : row[at.nodes].toLocaleString("en"), "right minor"),
  );
  return made;
}

function toggle(row, made, button) {
  const opened = !view.open.delete(row);
  if (opened) {
    view.open.add(row);
    made.after(detailsRow(row));
  } else {
    made.nextSibling.remove();
  }
  button.setAttribute("aria-expanded", String(opened));
}

function table(columns, rows) {
  const made = make("table");
  const head = made.createTHead().insertRow();
  for (const column of columns) head.append(make("th", column));
  const filled = made.createTBody();
  for (const cells of rows) {
    const line = filled.insertRow();
    for (const [text, className] of cells) line.append(make("td", text, className));
  }
  const scroll = make("div", undefined, "scroll");
  scroll.append(made);
  return scroll;
}

function gapRow([gap, nodes, names]) {
  const { op, way, reason, hint } = data.gaps[gap];
  const shown = names.join(", ") + (nodes > names.length ? ", …" : "");
  return [[op, "name"], [way], [reason + (hint ? " (" + hint + ")" : "")], [nodes, "right"], [shown, "name"]];
}

function accuracyRows([output, passed, ...sides]) {
  return sides.map((figures, side) => [
    [side ? "" : output, "name"],
    [side ? "after" : "before"],
    [side ? (passed === null ? "not judged" : passed ? "good enough" : "not good enough") : ""],
    ...figures.map((figure) => [figure === null ? "" : figureText(figure), "right"]),
  ]);
}

function detailsRow(row) {
  const line = make("tr", undefined, "details");
  const cell = make("td");
  cell.colSpan = heads.length;
  const list = make("dl");
  const facts = [
    ["error", row[at.error]],
    ["sources", row[at.sources].join(", ")],
    ["target", row[at.target]],
    ["tried", row[at.attempts] > 1 ? row[at.attempts] + " times" : ""],
    ["ran on", row[at.worker]],
    ["allowed", row[at.allowed].join("; ")],
    ["notes", row[at.notes].join("; ")],
    ["stages", row[at.stages].map(([name, seconds]) => name + " " + seconds.toFixed(2) + " s").join(", ")],
    ["engines", row[at.engines].join(" against ")],
  ];
  const prose = ["error", "notes", "allowed", "stages", "tried"];
  for (const [what, text] of facts) {
    if (text) list.append(make("dt", what), make("dd", text, prose.includes(what) ? "" : "name"));
  }
  cell.append(list);
  if (row[at.gaps].length) {
    cell.append(table(["operator", "on the way", "why", "nodes", ""], row[at.gaps].map(gapRow)));
  }
  if (row[at.outputs].length) {
    const cells = ([name, verdict, ...rest]) => [
      [name, "name"],
      [verdict],
      ...rest.slice(0, 3).map((figure) => [figureText(figure), "right"]),
      [rest[3]],
    ];
    cell.append(table(["output", "check", "max abs", "max rel", "cosine", ""], row[at.outputs].map(cells)));
  }
  if (row[at.accuracy].length) {
    const heads = ["made smaller", "", "", "cosine", "signal to noise, dB", "error, deviations", "same class"];
    cell.append(table(heads, row[at.accuracy].flatMap(accuracyRows)));
  }
  line.append(cell);
  return line;
}

function show() {
  const total = view.found.length;
  const shown = view.found.slice(view.first, view.first + PAGE);
  body.replaceChildren(
    ...shown.flatMap((row) => (view.open.has(row) ? [modelRow(row), detailsRow(row)] : [modelRow(row)])),
  );
  const [from, to] = [view.first + 1, view.first + shown.length].map((n) => n.toLocaleString("en"));
  const of = total.toLocaleString("en");
  elements.count.textContent = total ? `${from}–${to} of ${of}` : "no model";
  elements.previous.disabled = view.first === 0;
  elements.next.disabled = view.first + PAGE >= total;
  elements.chosen.hidden = view.operator === null;
  if (view.operator) elements.chosen.textContent = `waiting for ${view.operator[0]} ×`;
  for (const head of heads) {
    const order = view.descending ? "descending" : "ascending";
    if (head.dataset.column === view.sort) head.setAttribute("aria-sort", order);
    else head.removeAttribute("aria-sort");
  }
}

function movePage(pages) {
  view.first += pages * PAGE;
  show();
  elements.models.scrollIntoView();
}

for (const head of heads) {
  const column = head.dataset.column;
  head.firstElementChild.addEventListener("click", () => {
    const figures = head.classList.contains("right");
    view.descending = view.sort === column ? !view.descending : figures;
    view.sort = column;
    find();
  });
}
for (const button of document.querySelectorAll("button[data-operator]")) {
  button.addEventListener("click", () => {
    view.operator = [button.dataset.operator, button.dataset.way];
    find();
    elements.models.scrollIntoView();
  });
}
for (const button of document.querySelectorAll("button[data-status]")) {
  button.addEventListener("click", () => {
    elements.status.value = button.dataset.status;
    find();
    elements.models.scrollIntoView();
  });
}
for (const button of document.querySelectorAll("button[data-model]")) {
  button.addEventListener("click", () => {
    const row = data.rows.find((each) => each[at.name] === button.dataset.model);
    elements.search.value = button.dataset.model;
    elements.status.value = elements.verdict.value = "";
    view.operator = null;
    if (row) view.open.add(row);
    find();
    elements.models.scrollIntoView();
  });
}
elements.search.addEventListener("input", find);
elements.status.addEventListener("change", find);
elements.verdict.addEventListener("change", find);
elements.chosen.addEventListener("click", () => {
  view.operator = null;
  find();
});
elements.previous.addEventListener("click", () => movePage(-1));
elements.next.addEventListener("click", () => movePage(1));
find();
