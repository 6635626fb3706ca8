// The tail estimate: the latest messages of one condition, the tail that was fitted to them, and where it tells nothing more.

/** As many times the messages as an estimate may reach. */
const FARTHEST = 100;

/** Conditions with an estimate, or with a reason for none. */
function estimated(metric) {
  return shown().filter((c) => c[metric]?.tail);
}

/** The condition that is shown: the one that was chosen, otherwise the one with the latest estimate. */
function estimateOf(metric) {
  const some = estimated(metric);
  const latest = (a, b) => ((b[metric].tail.level_ns ?? -1) > (a[metric].tail.level_ns ?? -1) ? b : a);
  return some.find((c) => c.id === chosen.estimate) ?? some.reduce((a, b) => (a ? latest(a, b) : b), null);
}

function drawEstimate(figure, metric) {
  const condition = estimateOf(metric);
  if (!condition) return figure.replaceChildren(`There is no tail estimate of ${METRICS[metric]}.`);
  const { tail, scheduled } = condition[metric];
  for (const select of document.querySelectorAll(".choose-estimate select")) select.value = condition.id;
  if (tail.not_applicable) {
    const words = `Not applicable to ${condition.name}: ${tail.not_applicable}. So nothing is said of 1 in ${count(tail.one_in)}.`;
    return figure.replaceChildren(element("p", { class: "not-applicable" }, words));
  }
  const above = tail.exceedances / scheduled, farthest = FARTHEST * scheduled;
  const points = exceedance(condition[metric]).filter(([, share]) => share <= Math.min(1, 30 * above));
  const level = { q: 1 - 1 / tail.one_in, ...tail };
  const domain = niceLog(Math.min(tail.threshold_ns, points[0][0]), Math.max(tail.high_ns, condition[metric].max_ns));
  const width = Math.max(640, figure.clientWidth), height = 420;
  const plot = { left: 116, right: width - 24, top: 30, bottom: height - 46 };
  const x = logScale(...domain, plot.left, plot.right), y = logScale(points[0][1], 1 / (4 * farthest), plot.top, plot.bottom);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Tail estimate of ${condition.name}` });
  for (let n = 1; n <= 4 * farthest; n *= 10) {
    if (1 / n > points[0][1]) continue;
    picture.append(svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y(1 / n), y2: y(1 / n) }));
    picture.append(text(plot.left - 8, y(1 / n) + 4, shareWords(1 / n), { class: "tick", "text-anchor": "end" }));
  }
  for (const tick of logTicks(...domain, Math.floor((plot.right - plot.left) / 62))) {
    picture.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: plot.top, y2: plot.bottom }));
    picture.append(text(x(tick), plot.bottom + 18, time(tick), { class: "tick", "text-anchor": "middle" }));
  }
  picture.append(text((plot.left + plot.right) / 2, plot.bottom + 38, `${METRICS[metric]} of ${condition.name}`.slice(0, 110), { class: "title", "text-anchor": "middle" }));
  estimateBorders(picture, tail, scheduled, farthest, x, y, plot);
  estimateTail(picture, condition, metric, points, level, above, x, y);
  figure.replaceChildren(picture);
  byKeyboard(picture);
}

/** Where the tail begins, where messages end, and from where on nothing is told. */
function estimateBorders(picture, tail, scheduled, farthest, x, y, plot) {
  const at = x(tail.threshold_ns), end = y(1 / farthest), ended = y(1 / scheduled);
  picture.append(svg("rect", { class: "refused", x: plot.left, y: end, width: plot.right - plot.left, height: plot.bottom - end }));
  picture.append(text(plot.left + 8, end + 17, `refused: beyond 1 in ${count(farthest)}, ${FARTHEST} times the messages`, { class: "quantile halo" }));
  picture.append(svg("line", { class: "mtu", x1: plot.left, x2: plot.right, y1: ended, y2: ended }));
  picture.append(text(plot.left + 8, ended - 5, `measured: ${count(scheduled)} messages`, { class: "quantile halo" }));
  picture.append(svg("line", { class: "mtu", x1: at, x2: at, y1: plot.top, y2: plot.bottom }));
  picture.append(text(at + 5, plot.top - 8, `threshold ${time(tail.threshold_ns)}: ${count(tail.exceedances)} later, in ${count(tail.clusters)} clusters`, { class: "quantile halo" }));
}

function estimateTail(picture, condition, metric, points, tail, above, x, y) {
  const path = (points) => "M" + points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join("L");
  const from = [x(tail.threshold_ns), y(above)], course = tail.course ?? [];
  const side = (i) => course.map((l) => [x(l[i]), y(1 / l[0])]);
  const fitted = [];
  for (let share = above; share > 1 / tail.one_in; share /= 1.3) fitted.push([paretoLevel(tail, above / share), share]);
  fitted.push([tail.level_ns, 1 / tail.one_in]);
  if (course.length) picture.append(svg("path", { class: "band s0", d: path([from, ...side(2), ...side(3).reverse()]) + "z" }));
  picture.append(svg("path", { class: "line s5", d: path(points.map(([ns, share]) => [x(ns), y(share)])), "data-measured": condition.id }));
  picture.append(svg("path", { class: "line s0", d: path(fitted.map(([ns, share]) => [x(ns), y(share)])), "data-fitted": condition.id }));
  const [at, level] = [x(tail.level_ns), y(1 / tail.one_in)];
  picture.append(svg("path", { class: "interval s0", d: `M${x(tail.low_ns)},${level - 5}v10m0,-5H${x(tail.high_ns)}m0,-5v10` }));
  const lines = [
    condition.name, `one message in ${count(tail.one_in)} is later than about ${time(tail.level_ns)}`,
    `95${THIN}%: ${time(tail.low_ns)} to ${time(tail.high_ns)}; an estimate, not a bound`,
    `shape ${tail.shape}, scale ${time(tail.scale_ns)}, extremal index ${tail.extremal_index}`,
    `fit: Anderson-Darling ${tail.anderson_darling}, critical ${tail.critical}; held out: ${tail.held_out_found} clusters, ${tail.held_out_expected} expected`,
    `exactly ${count(tail.level_ns)}${THIN}ns`,
  ];
  const data = { condition: condition.id, metric, quantile: "estimate", valueNs: tail.level_ns, lowNs: tail.low_ns, highNs: tail.high_ns };
  picture.append(readable(dot(at, level, 4, "s0"), lines, data));
  const last = points[points.length - 1];
  picture.append(endMark(x(last[0]), y(last[1]), condition, metric, 5));
}

/** The level that one excess in `rarity` is above. */
function paretoLevel({ threshold_ns: threshold, scale_ns: scale, shape }, rarity) {
  return threshold + scale * (Math.abs(shape) < 1e-6 ? Math.log(rarity) : Math.expm1(shape * Math.log(rarity)) / shape);
}

function estimateRows(metric) {
  const heads = ["condition", "metric", "one_in", "level_ns", "low_ns", "high_ns", "threshold_ns", "exceedances", "clusters", "shape", "scale_ns", "not_applicable"];
  const rows = estimated(metric).flatMap((c) => {
    const { tail } = c[metric], of = (one_in, level, low, high) =>
      [c.name, metric, one_in, level, low, high, tail.threshold_ns, tail.exceedances, tail.clusters, tail.shape, tail.scale_ns, tail.not_applicable];
    // The last of the course is the level itself, told with all its digits.
    return [...(tail.course ?? []).slice(0, -1).map((l) => of(...l)), of(tail.one_in, tail.level_ns, tail.low_ns, tail.high_ns)];
  });
  return [heads, ...rows];
}
