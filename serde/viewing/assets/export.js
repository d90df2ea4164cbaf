"use strict";

/*
 * The whole drawing as a file, as far as it is unfolded. What the style says of each shape is
 * written at the shape, so that SVG needs no style sheet, and PNG is drawn by the same list.
 */

const LARGEST_SIDE = 16384;
const MOST_POINTS = 6e7;

class Picture {
  constructor(drawing) {
    const { width, height } = drawing.extent;
    Object.assign(this, { width: Math.ceil(width), height: Math.ceil(height) });
    this.ground = solid(getComputedStyle(document.body).backgroundColor);
    this.shapes = drawing.whole((scene) => [...scene.querySelectorAll("rect, path, text:not(.sign)")].flatMap(shapesOf));
  }

  svg() {
    const { width, height } = this;
    const root = element("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}` }, element("rect", { width, height, fill: this.ground }));
    for (const { kind, text, paint, ...place } of this.shapes) {
      const made = element(kind, { ...place, ...paint });
      if (kind === "text") made.textContent = text;
      root.append(made);
    }
    return new XMLSerializer().serializeToString(root);
  }

  canvas() {
    const { width, height } = this;
    const scale = Math.min(2, LARGEST_SIDE / Math.max(width, height), Math.sqrt(MOST_POINTS / (width * height)));
    const canvas = make("canvas", { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
    const ink = canvas.getContext("2d");
    ink.scale(scale, scale);
    ink.fillStyle = this.ground;
    ink.fillRect(0, 0, width, height);
    for (const shape of this.shapes) ink.save(), draw(ink, shape), ink.restore();
    return canvas;
  }
}

/* A shape of the scene with its paint, and the point of an arrow that ends there. */
function shapesOf(node) {
  const style = getComputedStyle(node);
  const { e: x, f: y } = node.parentNode.transform.baseVal.consolidate()?.matrix ?? { e: 0, f: 0 };
  const stroke = solid(style.stroke);
  const paint = { fill: solid(style.fill), stroke };
  if (stroke !== "none") Object.assign(paint, { "stroke-width": parseFloat(style.strokeWidth), "stroke-dasharray": style.strokeDasharray.replaceAll("px", "") });
  const shape = { kind: node.localName, transform: `translate(${x} ${y})`, paint };
  for (const name of ["x", "y", "width", "height", "rx", "d"]) if (node.hasAttribute(name)) shape[name] = node.getAttribute(name);
  if (shape.kind === "text") {
    Object.assign(paint, { "font-family": style.fontFamily, "font-size": style.fontSize, "font-weight": style.fontWeight, "text-anchor": style.textAnchor, "paint-order": "stroke" });
    shape.text = node.textContent;
  }
  if (!node.hasAttribute("marker-end")) return [shape];
  const wide = paint["stroke-width"];
  const { x: right, y: below } = node.getPointAtLength(node.getTotalLength());
  const point = `M${round(right - 2.8 * wide)} ${round(below - 5.5 * wide)}h${round(5.6 * wide)}L${round(right)} ${round(below)}z`;
  return [shape, { kind: "path", transform: shape.transform, d: point, paint: { fill: stroke, stroke: "none" } }];
}

function draw(ink, { kind, transform, text, paint, ...at }) {
  const [dx, dy] = transform.match(/-?[\d.]+/g).map(Number);
  ink.translate(dx, dy);
  Object.assign(ink, { fillStyle: paint.fill, strokeStyle: paint.stroke, lineWidth: paint["stroke-width"] ?? 1, lineJoin: "round" });
  ink.setLineDash((paint["stroke-dasharray"] ?? "none").match(/[\d.]+/g)?.map(Number) ?? []);
  if (kind === "text") {
    ink.font = `${paint["font-weight"]} ${paint["font-size"]} ${paint["font-family"]}`;
    ink.textAlign = { start: "left", middle: "center", end: "right" }[paint["text-anchor"]];
    if (paint.stroke !== "none") ink.strokeText(text, at.x, at.y);
    ink.fillText(text, at.x, at.y);
    return;
  }
  const path = new Path2D(at.d);
  if (kind === "rect") path.roundRect(+(at.x ?? 0), +(at.y ?? 0), +at.width, +at.height, +(at.rx ?? 0));
  if (paint.fill !== "none") ink.fill(path);
  if (paint.stroke !== "none") ink.stroke(path);
}

const solids = new Map();

/* A colour of the style as #rrggbb, which every program that reads SVG knows. */
function solid(colour) {
  if (colour === "none" || solids.has(colour)) return solids.get(colour) ?? "none";
  const ink = make("canvas", { width: 1, height: 1 }).getContext("2d");
  ink.fillStyle = colour;
  ink.fillRect(0, 0, 1, 1);
  const hex = [...ink.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((each) => each.toString(16).padStart(2, "0"));
  solids.set(colour, `#${hex.join("")}`);
  return solids.get(colour);
}

function saveAs(blob, suffix) {
  const link = make("a", { download: `${view.model.heading}.${suffix}`, href: URL.createObjectURL(blob) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

byId("svg").addEventListener("click", () => saveAs(new Blob([new Picture(drawing).svg()], { type: "image/svg+xml" }), "svg"));
byId("png").addEventListener("click", () => new Picture(drawing).canvas().toBlob((blob) => saveAs(blob, "png")));
