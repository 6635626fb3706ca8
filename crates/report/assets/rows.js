// The numbers of each figure, as rows of a table.

/** Quantiles of the conditions that are shown. */
function quantileRows(metric) {
  const heads = ["condition", ...VARIED, "metric", "n", "scheduled", "q", "value_ns", "low_ns", "high_ns", "needs", "beyond"];
  const rows = shown().filter((c) => c[metric]).flatMap((c) => {
    const figures = c[metric], levels = VARIED.map((f) => c.levels[f] ?? "");
    const head = [c.name, ...levels, metric, figures.n, figures.scheduled];
    const known = figures.quantiles.map((q) => [...head, q.q, q.value_ns, q.low_ns, q.high_ns, q.needs, q.beyond ?? q.high_beyond]);
    return [...known, [...head, "max", figures.max_ns, "", "", "", ""]];
  });
  return [heads, ...rows];
}

/** Flows, drawn without a script. */
function flowRows() {
  const keys = ["samples_per_s", "payload_mbit_s", "publisher_cpu_ns", "discovery_ns"], ends = ["median", "low", "high"];
  const heads = ["condition", ...VARIED, "subscribers", "sent", "lost", ...keys.flatMap((k) => ends.map((e) => `${k}_${e}`)), "last_p50_ns", "last_p99_ns"];
  const rows = report.conditions.filter((c) => c.flow).map(({ name, levels, flow }) => {
    const late = [0.5, 0.99].map((q) => flow.slowest?.quantiles.find((e) => e.q === q)?.value_ns);
    const spreads = keys.flatMap((k) => ends.map((e) => flow[k]?.[e]));
    return [name, ...VARIED.map((f) => levels[f] ?? ""), flow.subscribers, flow.sent, flow.lost, ...spreads, ...late];
  });
  return [heads, ...rows];
}

function legRows(condition) {
  const keys = ["send_lateness_ns", "out_ns", "turnaround_ns", "back_ns"];
  const of = (c) => [["median", c.median_message], ...(condition ? c.worst.slice(0, 10).map((m) => ["worst", m]) : [])];
  const row = (c, [which, m]) => [c.name, which, m.trial, m.slot, ...keys.map((key) => m[key])];
  const rows = (condition ? [condition] : shown()).flatMap((c) => of(c).filter(([, m]) => m).map((one) => row(c, one)));
  return [["condition", "which", "trial", "slot", ...keys], ...rows];
}

function loopRows(condition) {
  const metrics = ["wake_to_sent", "round_trip", "wake_period"];
  const rows = loopTrials(condition).flatMap((t) => t.course.unanswered.map((lost, i) => {
    const ranges = metrics.flatMap((metric) => t.course[metric][i] ?? ["", ""]);
    return [t.id, i * t.course.slots_per_column, ...ranges, lost];
  }));
  return [["trial", "first_slot", ...metrics.flatMap((m) => [`${m}_min_ns`, `${m}_max_ns`]), "unanswered"], ...rows];
}

/** What the slots without an answer are. */
function beyondOf({ counts }) {
  if (!counts.not_sent) return "lost";
  return counts.lost ? "lost or not sent" : "not sent";
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

function tailRows(metric) {
  const heads = ["condition", "metric", "latency_ns", "share_longer"];
  return [heads, ...overlaid().filter((c) => c[metric]?.n).flatMap((c) => exceedance(c[metric]).map(([ns, share]) => [c.name, metric, ns, share]))];
}

function estimateRows(metric) {
  const heads = ["condition", "metric", "one_in", "level_ns", "low_ns", "high_ns", "threshold_ns", "exceedances", "clusters", "shape", "scale_ns", "not_applicable"];
  const rows = estimated().flatMap((c) => {
    const { tail } = c[metric], of = (one_in, level, low, high) =>
      [c.name, metric, one_in, level, low, high, tail.threshold_ns, tail.exceedances, tail.clusters, tail.shape, tail.scale_ns, tail.not_applicable];
    // The last of the course is the level itself, told with all its digits.
    return [...(tail.course ?? []).slice(0, -1).map((l) => of(...l)), of(tail.one_in, tail.level_ns, tail.low_ns, tail.high_ns)];
  });
  return [heads, ...rows];
}

function histogramRows(metric) {
  const rows = overlaid().filter((c) => c[metric]?.n).flatMap((c) => {
    const buckets = c[metric].histogram.map(([low, high, n]) => [c.name, metric, low, high, n]);
    const lost = c[metric].scheduled - c[metric].n;
    return lost ? [...buckets, [c.name, metric, beyondOf(c), "", lost]] : buckets;
  });
  return [["condition", "metric", "low_ns", "high_ns", "messages"], ...rows];
}
