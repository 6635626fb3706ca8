// Payload (or another factor) against latency: median with its interval, p99 thin, maximum as hollow triangles.

const FIGURE_QUANTILES = [0.5, 0.99];

function shownAsLost(condition, metric) {
  return condition[metric]?.quantiles.find((q) => q.beyond && FIGURE_QUANTILES.includes(q.q));
}

function drawLatency(figure, metric) {
  const factor = chosen.x;
  const domain = extent(shown(), metric);
  if (!domain) return figure.replaceChildren("Nothing to show.");
  figure.replaceChildren(...shownPanels().map((panel) => drawPanel(panel, factor, metric, domain, figure.clientWidth)));
}

function drawPanel({ title, series }, factor, metric, domain, space) {
  const width = Math.max(640, space), height = title ? 330 : 400;
  const longest = Math.max(...series.map((s) => s.name.length)) + 4;
  const lossy = series.some((s) => s.conditions.some((c) => shownAsLost(c, metric)));
  const top = (title ? 34 : 14) + (lossy ? 26 : 0);
  const plot = { left: 64, right: width - Math.min(230, 30 + 7 * longest), top, bottom: height - 44 };
  const name = `${METRICS[metric]} against ${factor} ${title}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": name });
  const y = logScale(...domain, plot.bottom, plot.top);
  const x = xAxis(picture, factor, plot, series);
  if (title) picture.append(text(plot.left, 16, title, { class: "strong" }));
  for (const tick of logTicks(...domain, 11)) {
    const strong = Math.abs(Math.log10(tick) % 1) < 1e-9;
    picture.append(svg("line", { class: strong ? "grid strong" : "grid", x1: plot.left, x2: plot.right, y1: y(tick), y2: y(tick) }));
    picture.append(text(plot.left - 8, y(tick) + 4, time(tick), { class: "tick", "text-anchor": "end" }));
  }
  const labels = [], bands = [], lines = [], points = [];
  for (const one of series) drawSeries(one, metric, x, y, { labels, bands, lines, points });
  picture.append(...bands, ...lines, ...points);
  mtuLine(picture, factor, x, plot);
  if (lossy) drawLost(picture, series, metric, x, plot);
  nameEnds(picture, labels, x, plot);
  byKeyboard(picture);
  return picture;
}

/** Names lines where they end: beside the plot, or within it where a leader would look like more of the line. */
function nameEnds(picture, labels, x, plot) {
  const last = Math.max(...labels.map((l) => l.x));
  const early = x.joins ? labels.filter((l) => l.x < last - 20) : [];
  for (const l of early) picture.append(text(l.x + 9, l.y + 4, l.words, { class: `end halo s${l.hue}` }));
  const from = x.joins ? plot.right + 10 : last + 26;
  for (const l of spread(labels.filter((l) => !early.includes(l)), 14, plot.top + 4, plot.bottom)) {
    picture.append(svg("path", { class: `leader s${l.hue}`, d: `M${l.x + 8},${l.y}L${from},${l.at}h4` }));
    picture.append(text(from + 7, l.at + 4, l.words, { class: `end s${l.hue} ${l.strong ? "strong" : ""}` }));
  }
}

function drawSeries({ name, conditions, hue }, metric, x, y, into) {
  const at = (c) => x(c);
  const known = conditions.filter((c) => c[metric]?.n);
  const of = (q) => known.map((c) => [c, c[metric].quantiles.find((e) => e.q === q)]).filter(([, e]) => e?.value_ns != null);
  const median = of(0.5), tail = of(0.99);
  const high = (e) => (e.high_ns === null ? e.value_ns : e.high_ns);
  const path = (points) => "M" + points.map((p) => p.join(",")).join("L");
  if (median.length > 1 && x.joins) {
    const upper = median.map(([c, e]) => [at(c), y(high(e))]), lower = median.map(([c, e]) => [at(c), y(e.low_ns)]);
    into.bands.push(svg("path", { class: `band s${hue}`, d: path([...upper, ...lower.reverse()]) + "z" }));
    into.lines.push(svg("path", { class: `line s${hue}`, d: path(median.map(([c, e]) => [at(c), y(e.value_ns)])) }));
  }
  if (tail.length > 1 && x.joins) {
    into.lines.push(svg("path", { class: `line thin s${hue}`, d: path(tail.map(([c, e]) => [at(c), y(e.value_ns)])) }));
  }
  if (known.length > 1 && x.joins) {
    into.bands.push(svg("path", { class: `line dotted s${hue}`, d: path(known.map((c) => [at(c), y(c[metric].max_ns)])) }));
  }
  for (const [points, r] of [[median, 4], [tail, 2.5]]) {
    for (const [c, e] of points) {
      into.bands.push(svg("line", { class: `whisker s${hue}`, x1: at(c), x2: at(c), y1: y(e.low_ns), y2: y(high(e)) }));
      const lines = quantileLines(c.name, METRICS[metric], e, c[metric]);
      into.points.push(readable(dot(at(c), y(e.value_ns), r, `s${hue}`), lines, quantileData(c, metric, e)));
    }
  }
  for (const c of known) into.points.push(maxMark(at(c), y(c[metric].max_ns), c, c.name, metric, METRICS[metric], c[metric], `s${hue}`));
  const last = (points) => points[points.length - 1];
  const end = (entry, ns, words, strong) => entry && into.labels.push({ x: at(entry), y: y(ns), words, hue, strong });
  const [m, t, w] = [last(median), last(tail), last(known)];
  const short = name.length > 26 ? name.slice(0, 25) + "…" : name;
  if (m) end(m[0], m[1].value_ns, `${short} p50`, true);
  if (t) end(t[0], t[1].value_ns, `${short} p99`);
  if (w) end(w, w[metric].max_ns, `${short} max`);
}

/** Quantiles that are later than every answer: above the axis, where no time is. */
function drawLost(picture, series, metric, x, plot) {
  const y = plot.top - 18;
  const shown = series.flatMap(({ conditions }) => conditions.map((c) => shownAsLost(c, metric))).filter(Boolean);
  const name = shown.every((q) => q.beyond === "not_sent") ? "not sent" : "lost";
  picture.append(text(plot.left - 8, y + 4, name, { class: "tick", "text-anchor": "end" }));
  const names = new Map();
  series.forEach(({ conditions, hue }, i) => {
    const shift = (i - (series.length - 1) / 2) * 9;
    for (const c of conditions.filter((c) => c[metric])) {
      const lost = shownAsLost(c, metric);
      if (!lost) continue;
      const lines = quantileLines(c.name, METRICS[metric], lost, c[metric]);
      picture.append(readable(dot(x(c) + shift, y, 3.5, `gone s${hue}`), lines, quantileData(c, metric, lost)));
      names.set(x(c), [x(c) + shift + 8, label(lost.q)]);
    }
  });
  for (const [at, words] of names.values()) picture.append(text(at, y + 4, words, { class: "quantile" }));
}

/** Draws the axis; gives a function from a condition to its place. Levels that are no numbers stand side by side. */
function xAxis(picture, factor, plot, series) {
  const measured = shown();
  const values = measured.map((c) => xValue(c, factor));
  const numeric = values.every((v) => v > 0) && new Set(values).size > 1;
  const levels = [...new Set(measured.map((c) => c.levels[factor] ?? ""))];
  let place;
  if (numeric) {
    const scale = logScale(Math.min(...values), Math.max(...values), plot.left + 16, plot.right - 16);
    place = (c) => scale(xValue(c, factor));
    place.scale = scale;
  } else {
    const step = (plot.right - plot.left) / levels.length;
    const shift = (c) => (series.findIndex((s) => s.conditions.includes(c)) - (series.length - 1) / 2) * Math.min(18, step / (series.length + 1));
    place = (c) => plot.left + step * (levels.indexOf(c.levels[factor] ?? "") + 0.5) + shift(c);
    place.middle = (level) => plot.left + step * (levels.indexOf(level) + 0.5);
  }
  place.joins = numeric;
  picture.append(svg("line", { class: "axis", x1: plot.left, x2: plot.right, y1: plot.bottom, y2: plot.bottom }));
  let free = -Infinity;
  const ticks = levels.map((level) => [level, numeric ? place(measured.find((c) => c.levels[factor] === level)) : place.middle(level)]);
  for (const [level, at] of ticks.sort((a, b) => a[1] - b[1])) {
    picture.append(svg("line", { class: "axis", x1: at, x2: at, y1: plot.bottom, y2: plot.bottom + 4 }));
    const half = level.length * 3.4 + 4;
    if (at - half < free) continue;
    free = at + half;
    picture.append(text(at, plot.bottom + 18, level.replace(" ", THIN), { class: "tick", "text-anchor": "middle" }));
  }
  picture.append(text((plot.left + plot.right) / 2, plot.bottom + 37, factor, { class: "title", "text-anchor": "middle" }));
  return place;
}

function mtuLine(picture, factor, x, plot) {
  if (factor !== "payload" || !x.scale) return;
  for (const mtu of new Set(shown().map((c) => c.mtu_bytes).filter(Boolean))) {
    const at = x.scale(mtu);
    if (at <= plot.left || at >= plot.right) continue;
    picture.append(svg("line", { class: "mtu", x1: at, x2: at, y1: plot.top, y2: plot.bottom }));
    picture.append(text(at + 5, plot.bottom - 7, `MTU ${count(mtu)}${THIN}B`, { class: "tick halo" }));
  }
}
