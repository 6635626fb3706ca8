// Histograms: one row per condition over a common axis, counts on a log scale so that a single late message is seen.

function drawHistogram(figure, metric) {
  const conditions = overlaid().filter((c) => c[metric]?.histogram?.length);
  if (!conditions.length) return figure.replaceChildren("Choose a condition.");
  const hues = overlayHues();
  const domain = niceLog(Math.min(...conditions.map((c) => Math.max(1, c[metric].min_ns))), Math.max(...conditions.map((c) => c[metric].max_ns)));
  const most = Math.max(...conditions.flatMap((c) => c[metric].histogram.map((b) => b[2])));
  const width = Math.max(640, figure.clientWidth), row = 104, foot = 40;
  const plot = { left: 64, right: width - 96 };
  const x = logScale(...domain, plot.left, plot.right);
  const height = conditions.length * row + foot;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Histogram of ${METRICS[metric]}` });
  const bottom = height - foot;
  for (const tick of logTicks(...domain, Math.floor((plot.right - plot.left) / 62))) {
    picture.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: 20, y2: bottom }));
    picture.append(text(x(tick), bottom + 18, time(tick), { class: "tick", "text-anchor": "middle" }));
  }
  picture.append(text((plot.left + plot.right) / 2, bottom + 36, METRICS[metric], { class: "title", "text-anchor": "middle" }));
  conditions.forEach((condition, i) => {
    const base = (i + 1) * row;
    // Half a message is the floor: one message is seen, none is not.
    const y = logScale(0.5, most * 1.1, base, base - row + 26);
    histogramRow(picture, condition, metric, hues.get(condition.id), x, y, { ...plot, base });
  });
  figure.replaceChildren(picture);
  byKeyboard(picture);
}

function histogramRow(picture, condition, metric, hue, x, y, { left, right, base }) {
  const figures = condition[metric];
  picture.append(text(left, base - 84, `${shortName(condition)}, n = ${count(figures.n)}`, { class: `end s${hue}` }));
  for (const tick of [1, 100, 1e4, 1e6, 1e8].filter((t) => y(t) > base - 80)) {
    picture.append(text(left - 8, y(tick) + 4, count(tick), { class: "tick", "text-anchor": "end" }));
    picture.append(svg("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }));
  }
  picture.append(svg("line", { class: "axis", x1: left, x2: right, y1: base, y2: base }));
  for (const [low, high, n] of figures.histogram) {
    if (high < 1) continue;
    const from = x(Math.max(1, low)), to = x(high + 1);
    const bar = svg("rect", { class: `count s${hue}`, x: from, width: Math.max(0.8, to - from - 0.4), y: y(n), height: base - y(n) });
    const lines = [condition.name, `${count(n)} of ${count(figures.n)} messages`, `${METRICS[metric]} ${time(low)} to ${time(high)}`];
    picture.append(readable(bar, lines, { condition: condition.id, metric, bucket: low, count: n }));
  }
  const lost = figures.scheduled - figures.n;
  if (!lost) return;
  const bar = svg("rect", { class: "count lost", x: right + 26, width: 9, y: y(lost), height: base - y(lost) });
  const lines = [condition.name, `${count(lost)} of ${count(figures.scheduled)} messages`, beyondOf(condition)];
  picture.append(readable(bar, lines, { condition: condition.id, metric, bucket: "beyond", count: lost }));
  picture.append(text(right + 40, base - 4, `${beyondOf(condition)} ${count(lost)}`, { class: "tick" }));
}

function histogramRows(metric) {
  const rows = overlaid().filter((c) => c[metric]?.n).flatMap((c) => {
    const buckets = c[metric].histogram.map(([low, high, n]) => [c.name, metric, low, high, n]);
    const lost = c[metric].scheduled - c[metric].n;
    return lost ? [...buckets, [c.name, metric, beyondOf(c), "", lost]] : buckets;
  });
  return [["condition", "metric", "low_ns", "high_ns", "messages"], ...rows];
}
