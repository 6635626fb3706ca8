// Drawings follow the width of the page: the space between the edges of the plot is stretched or pressed, and words, dots and
// lines keep their size. Each drawing names its edges (data-plot). Where there is no room beside the plot, names of rows stand
// above their rows, and names of lines above the figure.

/** A picture narrower than this has its names above. */
const NARROW = 620;

/** Width of a picture on paper while the page is printed, otherwise 0. */
let paperWidth = 0;

const numberOf = (node, name) => Number(node.getAttribute(name));

/** How a drawing is fitted: where each x goes, and by how much the plot is stretched. */
function fitting(drawing, { left, right, width, narrow }) {
  const [from, to] = drawing.dataset.plot.split(" ").map(Number);
  const plot = Math.max(40, width - left - right), times = plot / (to - from);
  const at = (x) => (x < from ? x - from + left : x > to ? x - to + left + plot : left + (x - from) * times);
  return { at, times, from, to, left, right: left + plot, width, narrow };
}

/** The absolute steps of a path are moved; its relative steps are those of symbols. */
function fitPath(node, { at, times, from, left }) {
  const d = node.getAttribute("d"), moved = node.getAttribute("transform");
  if (moved || d.startsWith("m")) {
    // A path in units of its own lies in the plot.
    const [, x, sx, sy] = moved?.match(/translate\(([\d.-]+),0\) scale\(([\d.e-]+),([\d.e-]+)\)/) ?? [0, 0, 1, 1];
    return node.setAttribute("transform", `translate(${left + (x - from) * times},0) scale(${sx * times},${sy})`);
  }
  const step = (_, word, x, rest) => word + at(Number(x)).toFixed(1) + (rest ?? "");
  node.setAttribute("d", d.replace(/([MLH])(-?[\d.]+)(,-?[\d.]+)?/g, step));
}

const MOVED = { line: ["x1", "x2"], circle: ["cx"], text: ["x"] };

function fitShape(node, fit) {
  const kind = node.tagName;
  for (const name of MOVED[kind] ?? []) node.setAttribute(name, fit.at(numberOf(node, name)));
  if (kind === "path") fitPath(node, fit);
  if (kind === "polyline") {
    const point = (p) => { const [x, y] = p.split(","); return `${fit.at(Number(x)).toFixed(1)},${y}`; };
    node.setAttribute("points", node.getAttribute("points").split(" ").map(point).join(" "));
  }
  if (kind === "rect" || kind === "svg") {
    const x = numberOf(node, "x"), width = numberOf(node, "width"), begin = fit.at(x);
    node.setAttribute("x", begin);
    node.setAttribute("width", x >= fit.to || x + width <= fit.from ? width : Math.max(Math.min(width, 0.8), fit.at(x + width) - begin));
  }
  if (kind === "use") {
    node.setAttribute("transform", node.getAttribute("transform").replace(/translate\(0,(.*?)\) scale\(1,/, (_, y) => `translate(${fit.left - fit.from * fit.times},${y}) scale(${fit.times},`));
  }
}

/** Shapes that are moved: those of a part that is clipped have units of their own. */
function shapesOf(drawing) {
  return [...drawing.querySelectorAll("line, circle, text, path, polyline, rect, svg, use")].filter((node) => !node.closest("defs") && !node.parentNode.closest(".moves"));
}

/** Words are within the drawing, and no label of an axis or of a mark lies over another. */
function fitWords(drawing, { width, narrow }) {
  const shown = [...drawing.querySelectorAll("text")].map((node) => ({ node, box: node.getBBox() })).filter(({ box }) => box.width);
  const lines = new Map();
  for (const { node, box } of shown) {
    const off = box.x < 0 ? -box.x : Math.min(0, width - 1 - box.x - box.width);
    if (off && box.width < width) node.setAttribute("x", numberOf(node, "x") + off), box.x += off;
    const of = ["tick", "quantile"].find((c) => node.classList.contains(c));
    if (of && node.classList.contains("mid")) lines.set(of + node.getAttribute("y"), [...(lines.get(of + node.getAttribute("y")) ?? []), { node, box }]);
  }
  for (const line of lines.values()) {
    let free = -Infinity;
    for (const { node, box } of line.sort((a, b) => a.box.x - b.box.x)) {
      if (box.x < free) node.remove();
      else free = box.x + box.width + 4;
    }
  }
  // The words of a bar are shown where they fit; a tooltip has them in any case.
  for (const { node, box } of narrow ? shown : []) {
    const bar = node.classList.contains("value") && node.classList.contains("mid") && node.previousElementSibling?.querySelector("rect");
    if (bar && box.width > numberOf(bar, "width")) node.remove();
  }
}

/** In a narrow picture the name of a row stands above the row, with the words that stood at its end. */
function namesAbove(drawing, fit) {
  const name = drawing.querySelector("text.row");
  if (!name || drawing.querySelectorAll("text.row").length > 1) return;
  name.setAttribute("x", 0), name.setAttribute("y", -3), name.classList.remove("right");
  const open = drawing.querySelector("text.open");
  if (open) open.setAttribute("x", fit.width - 1), open.setAttribute("y", -3), open.classList.add("right");
  const { width, height } = drawing.viewBox.baseVal;
  drawing.setAttribute("viewBox", `0 -14 ${width} ${height + 14}`);
}

/** In a narrow picture with many rows, names stand above their bars, with the usual time at the right edge. Words beside bars
    have no room: a tooltip has them. */
function rowsAbove(drawing, fit) {
  for (const node of drawing.querySelectorAll("text")) {
    const y = numberOf(node, "y"), right = node.classList.contains("right");
    if (node.matches(".row")) node.setAttribute("x", 0), node.setAttribute("y", y - 16), node.classList.remove("right");
    else if (node.matches(".quantile.right")) node.setAttribute("x", fit.width - 1), node.setAttribute("y", y - 28);
    else if (node.matches(".tick.mid")) node.setAttribute("y", y - 5);
    else if (node.matches(".value:not(.mid)") || (node.matches(".tick") && right)) node.remove();
  }
}

/** How much room the drawings of a picture need beside the plot: words at the axis, and what lies beyond its right edge. */
function roomOf(drawings, width, rows) {
  const narrow = width < NARROW, one = drawings.every((d) => d.querySelectorAll("text.row").length < 2);
  let left = 0, right = 14;
  if (narrow && rows) return { left: 2, right, width, narrow };
  for (const drawing of drawings) {
    const [from, to] = drawing.dataset.plot.split(" ").map(Number), box = drawing.viewBox.baseVal;
    if (!narrow) { left = Math.max(left, from), right = Math.max(right, box.width - to); continue; }
    drawing.querySelectorAll(".names").forEach((names) => names.remove());
    for (const node of shapesOf(drawing)) {
      if ((one && node.matches("text.row")) || node.matches("text.open")) continue;
      const { x, width: wide } = node.getBBox();
      if (node.matches("text.right") && x + wide < from) left = Math.max(left, wide + from - x - wide + 2);
      if (x >= to) right = Math.max(right, x + wide - to + 4);
      else if (node.matches("text.value:not(.mid, .right)")) right = Math.max(right, Math.min(wide + 10, width / 4));
    }
  }
  return { left: Math.min(left, width / 2), right: Math.min(right, width / 2.5), width, narrow };
}

/** Fits all drawings of a picture to its width; their shapes must be as they were drawn. */
function fitPicture(picture) {
  for (const box of picture.matches(".multiples") ? [] : [picture, ...picture.querySelectorAll(".waterfall")]) {
    const width = paperWidth || Math.floor(box.clientWidth), drawings = [...box.children].filter((node) => node.matches("svg[data-plot]"));
    if (!width || !drawings.length) continue;
    const rows = box.matches(".waterfall"), room = roomOf(drawings, width, rows);
    for (const drawing of drawings) {
      const fit = fitting(drawing, room);
      for (const node of shapesOf(drawing)) fitShape(node, fit);
      drawing.setAttribute("viewBox", `0 0 ${width} ${drawing.viewBox.baseVal.height}`);
      if (room.narrow) (rows ? rowsAbove : namesAbove)(drawing, fit);
      fitWords(drawing, fit);
    }
    box.classList.add("fitted");
    box.classList.toggle("pressed", room.narrow);
  }
}

/** Calls `redraw` when the width of the page changes, when a folded part opens, and for paper. */
function followWidth(redraw) {
  let width = document.documentElement.clientWidth;
  const changed = () => {
    if (width === document.documentElement.clientWidth) return;
    width = document.documentElement.clientWidth;
    redraw();
  };
  let waiting;
  window.addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(changed); });
  document.addEventListener("toggle", ({ target }) => target.querySelector?.(".picture") && redraw(), true);
  window.addEventListener("beforeprint", () => { paperWidth = 720; redraw(); });
  window.addEventListener("afterprint", () => { paperWidth = 0; redraw(); });
}

/** What scrolls in itself can be scrolled by keyboard. */
function reachable() {
  for (const box of document.querySelectorAll(".scroll, pre, .picture, .waterfall")) {
    const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    if (!scrolls) { box.removeAttribute("tabindex"); continue; }
    box.setAttribute("tabindex", 0);
    if (!box.hasAttribute("role")) box.setAttribute("role", "region"), box.setAttribute("aria-label", box.closest("section, details")?.querySelector("h2, h3, summary")?.textContent ?? "Scrolls");
  }
}
