// A trial over time: the range of it that is looked at, and the column under the pointer. Nothing is drawn here.

/** When each column begins, ns after slot 0, and when the last one ends. */
function columnEdges(trial) {
  const o = trial.over_time, warm = Math.ceil(o.warm_up_slots / o.slots_per_column);
  const slotOf = (i) => Math.min(o.slots, i < warm ? i * o.slots_per_column : o.warm_up_slots + (i - warm) * o.slots_per_column);
  const columns = o.round_trip.max_ns.length, period = report.conditions[trial.condition].period_ns;
  const slots = Array.from({ length: columns + 1 }, (_, i) => (i === columns ? o.slots : slotOf(i)));
  if (period) return { slots, ns: slots.map((s) => s * period) };
  const mean = columns > 1 ? o.begin_ns[columns - 1] / slots[columns - 1] : 1;
  return { slots, ns: [...o.begin_ns, o.begin_ns[columns - 1] + mean * (o.slots - slots[columns - 1])] };
}

/** The trial, its columns, and the range in ns. `x` is a place in the picture of the whole trial. */
function timeView(picture) {
  const trial = chosen.trial, edges = columnEdges(trial), metric = timeMetric(trial), end = edges.ns[edges.ns.length - 1];
  const [from, to] = chosen.range.map((share) => share * end);
  const view = { picture, trial, edges, metric, values: trial.over_time[metric], end, from, to };
  const pane = picture?.querySelector(".cursor .pane");
  if (!pane) return view;
  const [left, width] = ["x", "width"].map((name) => Number(pane.getAttribute(name)));
  const x = (ns) => left + width * ns / end;
  // Where a time lies that is looked at: the range is as wide as the plot.
  const place = (ns) => left + width * (ns - from) / (to - from);
  return { ...view, left, width, x, place };
}

/** Shows the range that was chosen: what moves with time is in one window, which shows as much of its units as are asked for. */
function drawTime(picture) {
  const view = timeView(picture), { from, to, left, width, x, place } = view;
  if (!place) return;
  const moves = picture.querySelector(".moves"), box = moves.viewBox.baseVal;
  // What moves has the units in which it was drawn, however wide the plot is now.
  const [begin, end] = moves.closest("[data-plot]").dataset.plot.split(" ").map(Number), each = (end - begin) / view.end;
  moves.setAttribute("viewBox", `${begin + each * from} ${box.y} ${each * (to - from)} ${box.height}`);
  // The hatching stays as wide as it is.
  picture.querySelector("#hatch").setAttribute("patternTransform", `scale(${(x(to) - x(from)) / width} 1) rotate(45)`);
  const beginning = picture.querySelector(".from-begin");
  if (beginning) beginning.style.display = place(warmUpEnd(view)) - left > 50 ? "" : "none";
  timeAxis(view);
  for (const mark of picture.querySelectorAll(".mark")) {
    const at = Number(mark.querySelector(".hit").getAttribute("cx")), ns = (at - left) / width * view.end;
    mark.setAttribute("transform", `translate(${place(ns) - at},0)`);
    mark.style.display = ns >= from && ns <= to ? "" : "none";
  }
  const range = picture.querySelector(".window");
  range.setAttribute("x", x(from)), range.setAttribute("width", Math.max(2, x(to) - x(from)));
  for (const input of document.querySelectorAll(".range input")) input.value = 1000 * chosen.range[input.name === "from" ? 0 : 1];
}

function warmUpEnd({ trial, edges }) {
  return edges.ns[Math.ceil(trial.over_time.warm_up_slots / trial.over_time.slots_per_column)];
}

/** Ticks of the range, in place of those of the whole trial. */
function timeAxis({ picture, from, to, left, width, place }) {
  const unit = unitOf(to), step = niceStep((to - from) / unit[1], Math.min(8, width / 60)), box = picture.querySelector(".ticks");
  const [line, words, title] = [box.querySelector("line"), box.querySelector(".tick"), box.querySelector(".title")];
  const nodes = [];
  for (let k = Math.ceil(from / unit[1] / step - 1e-9); k * step * unit[1] <= to; k++) {
    const at = place(k * step * unit[1]), tick = line.cloneNode(), name = words.cloneNode();
    tick.setAttribute("x1", at), tick.setAttribute("x2", at), name.setAttribute("x", at);
    name.textContent = String(+(k * step).toPrecision(9));
    nodes.push(tick, name);
  }
  title.textContent = `${unit[0]} after slot 0`;
  box.replaceChildren(...nodes, title);
}

/** What a picture of a trial can do besides being looked at; once for each picture. */
function prepareTime(picture) {
  for (const mark of picture.querySelectorAll(".mark")) {
    const go = () => document.getElementById(mark.dataset.row)?.scrollIntoView({ block: "center" });
    mark.addEventListener("click", go);
    mark.addEventListener("keydown", (e) => e.key === "Enter" && go());
  }
  drawStems(picture);
  tellColumns(picture);
  dragRange(picture);
}

/** A light area below the highest message of each column: single messages alone look like noise. */
function drawStems(picture) {
  const bars = picture.querySelector("#time-bars"), { low, high, head, foot } = bars.firstElementChild.dataset;
  const { edges, values, end } = timeView(picture), [begin, last] = picture.querySelector("svg").dataset.plot.split(" ").map(Number);
  const x = (ns) => (begin + (last - begin) * ns / end).toFixed(2);
  const y = (ns) => (foot - (foot - head) * Math.log(Math.max(ns, low) / low) / Math.log(high / low)).toFixed(1);
  const d = values.max_ns.map((ns, i) => (ns == null ? "" : `M${x(edges.ns[i])},${foot}V${y(ns)}H${x(edges.ns[i + 1])}V${foot}z`));
  bars.before(svg("path", { class: "stem", d: d.join("") }));
}

/** Tells the column under the pointer; by keyboard: arrows, + and - to zoom, 0 for the whole. */
function tellColumns(picture) {
  const node = picture.querySelector(".cursor"), box = node.querySelector(".pane"), line = node.querySelector(".at");
  let column = -1;
  const tell = (i) => {
    const { edges, values, trial, left, width, place } = timeView(picture);
    column = Math.min(values.max_ns.length - 1, Math.max(0, i));
    const at = Math.min(left + width, Math.max(left, place((edges.ns[column] + edges.ns[column + 1]) / 2)));
    line.setAttribute("x1", at), line.setAttribute("x2", at);
    const [first, last] = [edges.slots[column], edges.slots[column + 1] - 1], high = values.max_ns[column];
    const title = `slot ${count(first)}${last > first ? ` to ${count(last)}` : ""}, ${time(edges.ns[column])} after slot 0`;
    const known = () => `min ${time(values.min_ns[column])}, median ${time(values.median_ns[column])}, max ${time(high)}\nthe longest exactly ${count(high)}${THIN}ns`;
    Object.assign(node.dataset, { trial: trial.id, at: column, maxNs: high ?? "", title, lines: high == null ? "no answer" : known() });
    node.setAttribute("aria-valuetext", linesOf(node).join(", ")), node.setAttribute("aria-valuenow", column);
    show(node);
  };
  const columnAt = (t) => {
    const { ns } = columnEdges(chosen.trial);
    let [a, b] = [0, ns.length - 1];
    while (b - a > 1) { const m = (a + b) >> 1; if (ns[m] <= t) a = m; else b = m; }
    return a;
  };
  box.addEventListener("pointermove", (e) => {
    const place = box.getBoundingClientRect(), { from, to } = timeView(picture);
    tell(columnAt(from + (to - from) * (e.clientX - place.left) / place.width));
  });
  box.addEventListener("pointerleave", () => hide(node));
  node.addEventListener("blur", () => hide(node));
  node.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 }[e.key], { from, to, end, edges } = timeView(picture);
    if (step) { e.preventDefault(); e.stopPropagation(); tell(column < 0 ? columnAt((from + to) / 2) : column + step); }
    const zoom = { "+": 0.5, "=": 0.5, "-": 2, "0": Infinity }[e.key];
    if (!zoom) return;
    zoomTime(zoom, (column < 0 ? (from + to) / 2 : edges.ns[column]) / end);
    drawTime(picture);
  });
}

/** Makes the range so many times as long, about `middle`. */
function zoomTime(times, middle) {
  const half = Math.min(0.5, Math.max(0.0005, (chosen.range[1] - chosen.range[0]) / 2 * times));
  const begin = Math.min(1 - 2 * half, Math.max(0, middle - half));
  chosen.range = [begin, begin + 2 * half];
}

/** Dragging over the whole trial chooses the range. */
function dragRange(picture) {
  const pane = picture.querySelector(".whole .pane"), range = picture.querySelector(".window");
  const [left, width] = ["x", "width"].map((name) => Number(pane.getAttribute(name)));
  const shareAt = (e) => { const b = pane.getBoundingClientRect(); return Math.min(1, Math.max(0, (e.clientX - b.left) / b.width)); };
  let began = null;
  pane.addEventListener("pointerdown", (e) => { began = shareAt(e); pane.setPointerCapture(e.pointerId); });
  pane.addEventListener("pointermove", (e) => {
    if (began === null) return;
    const ends = [began, shareAt(e)].sort((a, b) => a - b).map((s) => left + s * width);
    range.setAttribute("x", ends[0]), range.setAttribute("width", Math.max(2, ends[1] - ends[0]));
  });
  pane.addEventListener("pointerup", (e) => {
    const ends = [began ?? 0, shareAt(e)].sort((a, b) => a - b);
    began = null;
    // A click without a drag shows the whole again.
    chosen.range = ends[1] - ends[0] < 0.002 ? [0, 1] : ends;
    drawTime(picture);
  });
}

function timeRows() {
  const { trial, edges, metric, values, from, to } = timeView();
  const lost = new Map(trial.over_time.unanswered);
  const rows = values.max_ns.map((high, i) => [trial.id, metric, edges.slots[i], edges.slots[i + 1] - 1, Math.round(edges.ns[i]), values.min_ns[i], values.median_ns[i], high, lost.get(i) ?? 0]);
  return [["trial", "metric", "first_slot", "last_slot", "after_slot_0_ns", "min_ns", "median_ns", "max_ns", "unanswered"], ...rows.filter((_, i) => edges.ns[i + 1] > from && edges.ns[i] < to)];
}
