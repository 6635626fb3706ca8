// The tail: how rare each latency is, both axes logarithmic. Lost messages are later than all, so a line may end flat.

/** "1 in 400" for a share. */
function shareWords(share) {
  if (share >= 1) return "all";
  const n = 1 / share;
  return "1 in " + (n < 10 ? threeDigits(n) : count(Math.round(n)));
}

/** `[ns, share of messages that take longer]`, from all down to the longest; what is lost stays above it. */
function exceedance(figures) {
  const points = [[figures.min_ns, 1]];
  let left = figures.scheduled;
  for (const [, high, n] of figures.histogram) {
    left -= n;
    if (left > 0 && high < figures.max_ns) points.push([high, left / figures.scheduled]);
  }
  const lost = figures.scheduled - figures.n;
  // The longest itself is one message; those without an answer are later still.
  points.push([figures.max_ns, (lost || 1) / figures.scheduled]);
  return points.filter(([ns]) => ns > 0);
}

function drawTail(figure, metric) {
  const conditions = overlaid().filter((c) => c[metric]?.n);
  if (!conditions.length) return figure.replaceChildren("Choose a condition.");
  const hues = overlayHues();
  const domain = niceLog(Math.min(...conditions.map((c) => Math.max(1, c[metric].min_ns))), Math.max(...conditions.map((c) => c[metric].max_ns)));
  const rarest = 1.6 * Math.max(...conditions.map((c) => c[metric].scheduled));
  const width = Math.max(640, figure.clientWidth), height = 420;
  const longest = Math.max(...conditions.map((c) => endWords(c, c[metric]).length));
  const plot = { left: 104, right: width - Math.min(300, 40 + 6.8 * longest), top: 14, bottom: height - 46 };
  const x = logScale(...domain, plot.left, plot.right), y = logScale(1, 1 / rarest, plot.top, plot.bottom);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `How rare each ${METRICS[metric]} is` });
  for (let share = 1; share >= 1 / rarest; share /= 10) {
    picture.append(svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y(share), y2: y(share) }));
    picture.append(text(plot.left - 8, y(share) + 4, shareWords(share), { class: "tick", "text-anchor": "end" }));
  }
  for (const tick of logTicks(...domain, Math.floor((plot.right - plot.left) / 62))) {
    const strong = Math.abs(Math.log10(tick) % 1) < 1e-9;
    picture.append(svg("line", { class: strong ? "grid strong" : "grid", x1: x(tick), x2: x(tick), y1: plot.top, y2: plot.bottom }));
    picture.append(text(x(tick), plot.bottom + 18, time(tick), { class: "tick", "text-anchor": "middle" }));
  }
  picture.append(text((plot.left + plot.right) / 2, plot.bottom + 38, METRICS[metric], { class: "title", "text-anchor": "middle" }));
  const into = { labels: [], bands: [], lines: [], points: [] };
  for (const c of conditions) tailOf(c, metric, hues.get(c.id), x, y, plot, into);
  picture.append(...into.bands, ...into.lines, ...into.points);
  nameTails(picture, into.labels, plot);
  figure.replaceChildren(picture);
  byKeyboard(picture);
}

function tailOf(condition, metric, hue, x, y, plot, into) {
  const figures = condition[metric], points = exceedance(figures);
  const path = (points) => "M" + points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join("L");
  const known = figures.quantiles.filter((q) => q.value_ns != null && q.q < 1);
  if (known.length > 1) {
    const lower = known.map((q) => [x(q.low_ns), y(1 - q.q)]);
    const upper = known.map((q) => [q.high_ns === null ? plot.right : x(q.high_ns), y(1 - q.q)]);
    into.bands.push(svg("path", { class: `band s${hue}`, d: path([...lower, ...upper.reverse()]) + "z" }));
  }
  into.lines.push(svg("path", { class: `line s${hue}`, d: path(points.map(([ns, share]) => [x(ns), y(share)])), "data-condition": condition.id }));
  for (const q of known) {
    const lines = quantileLines(condition.name, METRICS[metric], q, figures);
    into.points.push(readable(dot(x(q.value_ns), y(1 - q.q), 3, `s${hue}`), lines, quantileData(condition, metric, q)));
  }
  const [last, share] = points[points.length - 1], lost = figures.scheduled - figures.n;
  if (lost) into.lines.push(svg("path", { class: `line flat s${hue}`, d: path([[x(last), y(share)], [plot.right, y(share)]]) }));
  into.labels.push({ x: lost ? plot.right : x(last), y: y(share), words: endWords(condition, figures), hue });
  into.points.push(endMark(x(last), y(share), condition, metric, hue));
}

/** What stands beside the end of a line. */
function endWords(condition, { scheduled, n }) {
  const name = shortName(condition).slice(0, 30);
  return scheduled > n ? `${name}, ${beyondOf(condition)}: ${shareWords((scheduled - n) / scheduled)}` : name;
}

/** What the slots without an answer are. */
function beyondOf({ counts }) {
  if (!counts.not_sent) return "lost";
  return counts.lost ? "lost or not sent" : "not sent";
}

/** Where n ends the line ends: a hollow dot. */
function endMark(x, y, condition, metric, hue) {
  const figures = condition[metric];
  const lines = [condition.name, `${METRICS[metric]}, the longest of ${count(figures.n)}`, time(figures.max_ns)];
  if (figures.rule_of_three) lines.push(`at most ${shareWords(figures.rule_of_three)} is later (95${THIN}%)`);
  if (figures.scheduled > figures.n) lines.push(`${count(figures.scheduled - figures.n)} of ${count(figures.scheduled)} ${beyondOf(condition)}`);
  lines.push(`exactly ${count(figures.max_ns)}${THIN}ns`);
  return readable(dot(x, y, 4, `gone s${hue}`), lines, { condition: condition.id, metric, quantile: "max", valueNs: figures.max_ns });
}

/** Names beside the plot, those that end further right nearer to the end. */
function nameTails(picture, labels, plot) {
  labels.sort((a, b) => a.y - b.y || a.x - b.x);
  for (const l of spread(labels, 15, plot.top + 4, plot.bottom)) {
    picture.append(svg("path", { class: `leader s${l.hue}`, d: `M${l.x + 6},${l.y}L${plot.right + 8},${l.at}h4` }));
    picture.append(text(plot.right + 16, l.at + 4, l.words, { class: `end s${l.hue}` }));
  }
}

function tailRows(metric) {
  const heads = ["condition", "metric", "latency_ns", "share_longer"];
  return [heads, ...overlaid().filter((c) => c[metric]?.n).flatMap((c) => exceedance(c[metric]).map(([ns, share]) => [c.name, metric, ns, share]))];
}
