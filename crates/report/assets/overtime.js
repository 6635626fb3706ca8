// A trial over time: lowest, median and highest of every column, with the whole beside the range that is looked at.

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

/** The metric of the page where it was followed, otherwise the round trip. */
function timeMetric(trial) {
  return chosen.metric === "from_intended" && trial.over_time.from_intended ? "from_intended" : "round_trip";
}

/** What is drawn: the trial, its columns, and the range in ns. */
function timeView() {
  const trial = chosen.trial, edges = columnEdges(trial), metric = timeMetric(trial);
  const end = edges.ns[edges.ns.length - 1], [from, to] = chosen.range;
  return { trial, edges, metric, values: trial.over_time[metric], end, from: from * end, to: to * end };
}

function drawTime(figure) {
  const view = timeView(), width = Math.max(640, figure.clientWidth);
  const highs = view.values.max_ns.filter((v) => v != null);
  if (!highs.length) return figure.replaceChildren("No message was answered.");
  const lows = view.values.min_ns.filter((v) => v > 0);
  const domain = niceLog(lows.reduce((a, b) => Math.min(a, b), Infinity), highs.reduce((a, b) => Math.max(a, b), 1));
  const main = timePanel(view, domain, width), whole = timeWhole(view, domain, width, () => drawTime(figure));
  figure.replaceChildren(main, whole);
  for (const input of document.querySelectorAll(".range input")) input.value = 1000 * chosen.range[input.name === "from" ? 0 : 1];
}

/** Strips under the axis: what ran beside the trial, and when a thread of a late message was held up. */
function strips({ trial, metric }) {
  const loads = new Map();
  for (const load of report.loads ?? []) {
    if (load.trial !== trial.id || load.began_after_ns == null) continue;
    const name = `${load.run}${load.part ? ` (${load.part})` : ""} at ${load.at}`;
    loads.set(name, [...(loads.get(name) ?? []), [load.began_after_ns, load.began_after_ns + load.ran_ns]]);
  }
  const held = report.conditions[trial.condition].worst.filter((m) => m.trial === trial.id && m.cause && m.cause.kind !== "unexplained");
  const spans = held.map((m) => [dueOf(m, trial), dueOf(m, trial) + (m[`${metric}_ns`] ?? 0)]);
  return [...loads, ...(spans.length ? [["worst messages with a cause", spans]] : [])].slice(0, 6);
}

/** When a message was due, ns after slot 0. */
function dueOf(message, trial) {
  return (message.intended_ns ?? message.send_begin_ns) - (trial.t0_ns ?? 0);
}

/** Columns as bars from the lowest to the highest, as many as there are pixels at most; no maximum is dropped. */
function timeBars({ edges, values, from, to }, x, y, plot) {
  const pixels = Math.round(plot.right - plot.left);
  const bars = new Map();
  for (let i = 0; i < values.max_ns.length; i++) {
    if (values.max_ns[i] == null || edges.ns[i + 1] <= from || edges.ns[i] >= to) continue;
    const begin = Math.max(plot.left, x(edges.ns[i])), end = Math.min(plot.right, x(edges.ns[i + 1]));
    const wide = end - begin >= 1, key = wide ? `c${i}` : Math.min(pixels - 1, Math.floor(begin - plot.left));
    const at = wide ? begin : plot.left + key, width = wide ? end - begin : 1;
    const bar = bars.get(key) ?? { at, width, low: Infinity, high: -Infinity, medians: [Infinity, -Infinity] };
    bar.low = Math.min(bar.low, values.min_ns[i]);
    bar.high = Math.max(bar.high, values.max_ns[i]);
    bar.medians = [Math.min(bar.medians[0], values.median_ns[i]), Math.max(bar.medians[1], values.median_ns[i])];
    bars.set(key, bar);
  }
  // Seen also where the ends agree.
  const rect = ({ at, width }, low, high) => `M${at.toFixed(1)},${(y(high) - 0.6).toFixed(1)}h${width.toFixed(1)}V${(y(low) + 0.6).toFixed(1)}h-${width.toFixed(1)}z`;
  const all = [...bars.values()];
  return [all.map((b) => rect(b, b.low, b.high)).join(""), all.map((b) => rect(b, ...b.medians)).join(""), all.length];
}

function timePanel(view, domain, width) {
  const { trial, edges, metric, values, from, to } = view, hue = HUES.get(trial.condition) ?? 0;
  const rows = strips(view), base = 300, height = base + 44 + 16 * rows.length;
  const plot = { left: 64, right: width - 24, top: 26, bottom: base };
  const x = linearScale(from, to, plot.left, plot.right), y = logScale(...domain, plot.bottom, plot.top);
  const inside = (t) => Math.min(plot.right, Math.max(plot.left, x(t)));
  const words = `${METRICS[metric]} of trial ${trial.id} over time`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": words });
  const hatch = svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { class: "hatch", width: 2, height: 6 }));
  picture.append(svg("defs", {}, hatch));
  const shade = (kind, a, b) => b > from && a < to && picture.append(svg("rect", { class: kind, x: inside(a), width: Math.max(1, inside(b) - inside(a)), y: plot.top, height: plot.bottom - plot.top }));
  const warm = edges.ns[Math.ceil(trial.over_time.warm_up_slots / trial.over_time.slots_per_column)];
  if (trial.over_time.warm_up_slots) {
    shade("warm-up", 0, warm);
    if (from < warm && x(warm) - plot.left > 50) picture.append(text(plot.left + 5, plot.top + 13, "warm-up", { class: "quantile" }));
  }
  for (const tick of logTicks(...domain, 8)) {
    picture.append(svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y(tick), y2: y(tick) }));
    picture.append(text(plot.left - 8, y(tick) + 4, time(tick), { class: "tick", "text-anchor": "end" }));
  }
  for (const w of invalidWindows(trial)) shade("invalid-window", w[0], w[1]);
  const [ranges, medians, bars] = timeBars(view, x, y, plot);
  picture.append(svg("path", { class: `span s${hue}`, d: ranges, "data-bars": bars, "data-trial": trial.id }), svg("path", { class: `middle s${hue}`, d: medians }));
  const lost = trial.over_time.unanswered.filter(([c]) => edges.ns[c] < to && edges.ns[c + 1] > from);
  if (lost.length) {
    picture.append(text(plot.left - 8, plot.top - 9, "lost", { class: "tick", "text-anchor": "end" }));
    picture.append(svg("path", { class: "gone-tick", d: lost.map(([c]) => `M${inside((edges.ns[c] + edges.ns[c + 1]) / 2).toFixed(1)},${plot.top - 15}v8`).join("") }));
  }
  picture.append(svg("line", { class: "axis", x1: plot.left, x2: plot.right, y1: plot.bottom, y2: plot.bottom }));
  timeAxis(picture, from, to, x, plot);
  rows.forEach(([name, spans], i) => {
    const top = plot.bottom + 42 + 16 * i;
    for (const [a, b] of spans.filter(([a, b]) => b > from && a < to)) {
      picture.append(svg("rect", { class: "strip", x: inside(a), width: Math.max(1.5, inside(b) - inside(a)), y: top, height: 5 }));
    }
    picture.append(text(plot.left, top + 13, name, { class: "quantile halo" }));
  });
  picture.append(cursor(view, x, y, plot));
  picture.append(...worstMarks(view, x, y));
  byKeyboard(picture);
  return picture;
}

function timeAxis(picture, from, to, x, plot) {
  const unit = unitOf(to), step = linearTicks((to - from) / unit[1], 8)[1] ?? 1;
  for (let k = Math.ceil(from / unit[1] / step - 1e-9); k * step * unit[1] <= to; k++) {
    const at = x(k * step * unit[1]);
    picture.append(svg("line", { class: "axis", x1: at, x2: at, y1: plot.bottom, y2: plot.bottom + 4 }));
    picture.append(text(at, plot.bottom + 17, String(+(k * step).toPrecision(9)), { class: "tick", "text-anchor": "middle" }));
  }
  picture.append(text((plot.left + plot.right) / 2, plot.bottom + 34, `${unit[0]} after slot 0`, { class: "title", "text-anchor": "middle" }));
}

/** Spans of the trial in which a clock was stepped, ns after slot 0. */
function invalidWindows(trial) {
  const spans = report.clocks.flatMap((c) => c.invalid_windows).filter((w) => w.trial === trial.id);
  return spans.map((w) => [w.from_ns - (trial.t0_ns ?? 0), w.to_ns - (trial.t0_ns ?? 0)]);
}

/** The ten worst of the condition that are of this trial, numbered as their sentences are. */
function worstMarks({ trial, metric, from, to }, x, y) {
  const condition = report.conditions[trial.condition];
  return condition.worst.slice(0, 10).flatMap((m, i) => {
    const due = dueOf(m, trial), ns = m[`${metric}_ns`];
    if (m.trial !== trial.id || ns == null || due < from || due > to) return [];
    const lines = [`${i + 1}: slot ${count(m.slot)}, trial ${m.trial}`, `${METRICS[metric]} ${time(ns)}`, ...(m.cause ? [m.cause.text] : []), `exactly ${count(ns)}${THIN}ns`];
    const data = { condition: condition.id, slot: m.slot, trial: m.trial, part: `${metric}_ns`, valueNs: ns };
    const mark = readable(dot(x(due), y(ns), 3.5, "gone s5"), lines, data);
    mark.append(text(x(due) + 6, y(ns) - 5, String(i + 1), { class: "quantile halo" }));
    const go = () => document.getElementById(`worst-${condition.id}-${i + 1}`)?.scrollIntoView({ block: "center" });
    mark.addEventListener("click", go);
    mark.addEventListener("keydown", (e) => e.key === "Enter" && go());
    return [mark];
  });
}

/** Tells the column under the pointer; by keyboard: arrows, + and - to zoom, 0 for the whole. */
function cursor(view, x, y, plot) {
  const { edges, values, trial, from, to } = view;
  const box = svg("rect", { class: "pane", x: plot.left, y: plot.top, width: plot.right - plot.left, height: plot.bottom - plot.top });
  const line = svg("line", { class: "hit at", y1: plot.top, y2: plot.bottom, x1: -9, x2: -9 });
  const node = svg("g", { class: "cursor", tabindex: 0, role: "slider", "aria-label": "column", "aria-valuetext": "" }, box, line);
  let column = -1;
  const tell = (i) => {
    column = Math.min(values.max_ns.length - 1, Math.max(0, i));
    const at = Math.min(plot.right, Math.max(plot.left, x((edges.ns[column] + edges.ns[column + 1]) / 2)));
    line.setAttribute("x1", at), line.setAttribute("x2", at);
    const [first, last] = [edges.slots[column], edges.slots[column + 1] - 1], high = values.max_ns[column];
    node.lines = [`slot ${count(first)}${last > first ? ` to ${count(last)}` : ""}, ${time(edges.ns[column])} after slot 0`];
    node.lines.push(...(high == null ? ["no answer"] : [`min ${time(values.min_ns[column])}, median ${time(values.median_ns[column])}, max ${time(high)}`, `the longest exactly ${count(high)}${THIN}ns`]));
    Object.assign(node.dataset, { trial: trial.id, at: column, maxNs: high ?? "" });
    node.setAttribute("aria-valuetext", node.lines.join(", "));
    show(node);
  };
  const columnAt = (t) => { let [a, b] = [0, edges.ns.length - 1]; while (b - a > 1) { const m = (a + b) >> 1; if (edges.ns[m] <= t) a = m; else b = m; } return a; };
  box.addEventListener("pointermove", (e) => {
    const place = box.getBoundingClientRect();
    tell(columnAt(from + (to - from) * (e.clientX - place.left) / place.width));
  });
  box.addEventListener("pointerleave", () => hide(node));
  node.addEventListener("blur", () => hide(node));
  node.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 }[e.key];
    if (step) { e.preventDefault(); e.stopPropagation(); tell(column < 0 ? columnAt((from + to) / 2) : column + step); }
    const zoom = { "+": 0.5, "=": 0.5, "-": 2, "0": Infinity }[e.key];
    if (!zoom) return;
    const figure = node.closest(".picture"), middle = column < 0 ? (from + to) / 2 : edges.ns[column];
    zoomTime(zoom, middle / view.end);
    drawTime(figure);
    figure.querySelector(".cursor").focus();
  });
  return node;
}

/** Makes the range so many times as long, about `middle`. */
function zoomTime(times, middle) {
  const half = Math.min(0.5, Math.max(0.0005, (chosen.range[1] - chosen.range[0]) / 2 * times));
  const begin = Math.min(1 - 2 * half, Math.max(0, middle - half));
  chosen.range = [begin, begin + 2 * half];
}

/** The whole trial; dragging over it chooses the range. */
function timeWhole(view, domain, width, redraw) {
  const height = 58, plot = { left: 64, right: width - 24, top: 4, bottom: 52 };
  const x = linearScale(0, view.end, plot.left, plot.right), y = logScale(...domain, plot.bottom, plot.top);
  const picture = svg("svg", { class: "whole", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "The whole trial, and the range that is shown" });
  const [ranges] = timeBars({ ...view, from: 0, to: view.end }, x, y, plot);
  const pane = svg("rect", { class: "pane", x: plot.left, y: 0, width: plot.right - plot.left, height });
  const range = svg("rect", { class: "window", x: x(view.from), width: Math.max(2, x(view.to) - x(view.from)), y: 1, height: height - 2 });
  picture.append(text(plot.left - 8, 32, "whole", { class: "tick", "text-anchor": "end" }), svg("path", { class: "span whole", d: ranges }), range, pane);
  const shareAt = (e) => { const b = pane.getBoundingClientRect(); return Math.min(1, Math.max(0, (e.clientX - b.left) / b.width)); };
  let began = null;
  pane.addEventListener("pointerdown", (e) => { began = shareAt(e); pane.setPointerCapture(e.pointerId); });
  pane.addEventListener("pointermove", (e) => {
    if (began === null) return;
    const ends = [began, shareAt(e)].sort((a, b) => a - b).map((s) => plot.left + s * (plot.right - plot.left));
    range.setAttribute("x", ends[0]), range.setAttribute("width", Math.max(2, ends[1] - ends[0]));
  });
  pane.addEventListener("pointerup", (e) => {
    const ends = [began ?? 0, shareAt(e)].sort((a, b) => a - b);
    began = null;
    // A click without a drag shows the whole again.
    chosen.range = ends[1] - ends[0] < 0.002 ? [0, 1] : ends;
    redraw();
  });
  return picture;
}

function timeRows() {
  const { trial, edges, metric, values, from, to } = timeView();
  const lost = new Map(trial.over_time.unanswered);
  const rows = values.max_ns.map((high, i) => [trial.id, metric, edges.slots[i], edges.slots[i + 1] - 1, Math.round(edges.ns[i]), values.min_ns[i], values.median_ns[i], high, lost.get(i) ?? 0]);
  return [["trial", "metric", "first_slot", "last_slot", "after_slot_0_ns", "min_ns", "median_ns", "max_ns", "unanswered"], ...rows.filter((_, i) => edges.ns[i + 1] > from && edges.ns[i] < to)];
}
