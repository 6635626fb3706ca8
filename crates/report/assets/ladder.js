// The percentile ladder: one row per condition, every quantile with its interval on one log axis.

function drawLadder(figure, metric) {
  const domain = extent(shown(), metric);
  if (!domain) return figure.replaceChildren("Nothing to show.");
  const rows = shown().filter((c) => c[metric]);
  const width = Math.max(720, figure.clientWidth), step = 36, top = 34;
  const height = top + rows.length * step + 12;
  const names = rows.map((c) => shortName(c));
  const left = Math.min(240, 16 + 7 * Math.max(...names.map((n) => n.length)));
  const gutter = Math.max(24, ...rows.map((c) => openWidth(c[metric])));
  const plot = { left: left + 8, right: width - gutter, top, bottom: height - 12 };
  const x = logScale(...domain, plot.left, plot.right);
  const title = `Percentiles of ${METRICS[metric]}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": title });
  for (const tick of logTicks(...domain, Math.floor((plot.right - plot.left) / 62))) {
    const strong = Math.abs(Math.log10(tick) % 1) < 1e-9;
    picture.append(svg("line", { class: strong ? "grid strong" : "grid", x1: x(tick), x2: x(tick), y1: plot.top - 8, y2: plot.bottom }));
    picture.append(text(x(tick), plot.top - 16, time(tick), { class: "tick", "text-anchor": "middle" }));
  }
  rows.forEach((condition, i) => {
    const y = plot.top + step * (i + 0.5) + 5;
    picture.append(text(left, y + 4, names[i].length > 32 ? names[i].slice(0, 31) + "…" : names[i], { class: "row", "text-anchor": "end" }));
    drawRung(picture, condition, metric, x, y, plot, HUES.get(condition.id));
  });
  figure.replaceChildren(picture);
  byKeyboard(picture);
}

function drawRung(picture, condition, metric, x, y, plot, hue) {
  const figures = condition[metric], known = figures.quantiles.filter((q) => q.value_ns != null);
  const first = known[0]?.value_ns ?? figures.min_ns, last = figures.max_ns ?? first;
  if (first != null) picture.append(svg("line", { class: `rung s${hue}`, x1: x(first), x2: x(last), y1: y, y2: y }));
  for (const q of known) {
    const high = q.high_ns === null ? plot.right : x(q.high_ns);
    const low = x(q.low_ns);
    const d = `M${low},${y - 4}v8M${high},${y - 4}v8M${low},${y}H${high}`;
    picture.append(svg("path", { class: `interval s${hue} ${q.too_narrow ? "narrow" : ""}`, d }));
  }
  known.forEach((q, i) => {
    const mark = dot(x(q.value_ns), y, Math.max(2.4, 4.4 - 0.5 * i), `s${hue}`);
    const lines = quantileLines(condition.name, METRICS[metric], q, figures);
    picture.append(readable(mark, lines, quantileData(condition, metric, q)));
  });
  const names = known.map((q) => [x(q.value_ns), label(q.q).slice(1)]);
  if (figures.max_ns != null) {
    picture.append(maxMark(x(figures.max_ns), y, condition, condition.name, metric, METRICS[metric], figures, `s${hue}`));
    names.push([x(figures.max_ns), "max"]);
  }
  nameMarks(picture, names, y - 9);
  // Quantiles without a number stand beside the axis, the rarest last.
  const open = figures.quantiles.filter((q) => q.value_ns == null);
  let at = plot.right + 26;
  for (const q of open) {
    const kind = q.needs ? "needs" : "lost";
    const lines = quantileLines(condition.name, METRICS[metric], q, figures);
    picture.append(readable(dot(at, y, 3.6, kind), lines, quantileData(condition, metric, q)));
    at += 11;
  }
  if (open.length) picture.append(text(at, y + 4, openWords(figures), { class: "open" }));
}

/** Room for the quantiles without a number, beside the axis. */
function openWidth(figures) {
  const open = figures.quantiles.filter((q) => q.value_ns == null).length;
  return open ? 36 + 11 * open + 6.1 * openWords(figures).length : 0;
}

/** Names above marks, where there is room: the median first, then from the tail down. */
function nameMarks(picture, names, y) {
  const taken = [];
  for (const [at, words] of [names[0], ...names.slice(1).reverse()].filter(Boolean)) {
    const half = words.length * 3.1 + 1.5;
    if (taken.some(([low, high]) => at + half > low && at - half < high)) continue;
    taken.push([at - half, at + half]);
    picture.append(text(at, y, words, { class: "quantile", "text-anchor": "middle" }));
  }
}

/** What the quantiles without a number lack; of several that lack messages the least. */
function openWords(figures) {
  const lost = figures.quantiles.filter((q) => q.beyond).map((q) => `${label(q.q)} ${beyondWords(q.beyond)}`).slice(0, 1);
  const lacking = figures.quantiles.filter((q) => q.needs).slice(0, 1);
  return [...lost, ...lacking.map((q) => `${label(q.q)} needs ${count(q.needs)}`)].join(", ");
}
