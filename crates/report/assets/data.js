// The report, and how its conditions fall into series and rows.

const report = JSON.parse(document.getElementById("report").textContent);

const METRICS = {
  round_trip: "round trip", from_intended: "from intended", out: "out", turnaround: "turnaround", back: "back",
  send_lateness: "send lateness", send_duration: "send duration", wake_to_sent: "woken to sent", wake_period: "wake period",
};

/** Conditions that were run. */
const measured = report.conditions.filter((c) => c.round_trip);

/** Factors with more than one level, in the order of the study. */
function differing() {
  const all = [...new Set([...report.run.factors, ...report.conditions.flatMap((c) => Object.keys(c.levels))])];
  return all.filter((f) => new Set(report.conditions.map((c) => c.levels[f])).size > 1);
}

const VARIED = differing();

/** A condition within the report: the levels that differ. */
function shortName(condition, without = []) {
  const levels = VARIED.filter((f) => !without.includes(f)).map((f) => condition.levels[f]);
  return levels.filter(Boolean).join(", ") || (without.length ? "" : condition.name);
}

/** Where a condition lies on the x axis, or null when its level is no number. */
function xValue(condition, factor) {
  if (factor === "payload") return condition.payload_bytes;
  if (factor === "rate") return condition.period_ns ? 1e9 / condition.period_ns : null;
  const number = parseFloat(condition.levels[factor]);
  return number > 0 && /^[\d.]+$/.test(condition.levels[factor]) ? number : null;
}

/** Series in the order of the study: conditions that differ in `factor` alone; one hue each. */
function seriesAlong(factor, conditions = measured, without = []) {
  const series = new Map();
  for (const condition of conditions) {
    const name = shortName(condition, [factor, ...without]);
    if (!series.has(name)) series.set(name, []);
    series.get(name).push(condition);
  }
  return [...series].map(([name, conditions], i) => ({ name, conditions, hue: i % 6 }));
}

/** As few panels as keep the series of each apart by their hue: one, or one per level of the outermost factor. */
function panelsAlong(factor) {
  const all = seriesAlong(factor);
  const outer = VARIED.find((f) => f !== factor);
  if (all.length <= 6 || !outer) return [{ title: "", series: all }];
  const levels = [...new Set(measured.map((c) => c.levels[outer]))];
  const within = (level) => measured.filter((c) => c.levels[outer] === level);
  return levels.map((level) => ({ title: `${outer} ${level}`, series: seriesAlong(factor, within(level), [outer]) }));
}

/** The hue of a condition, so that all figures agree. */
const HUES = new Map();
for (const { conditions, hue } of panelsAlong(report.view.x).flatMap((p) => p.series)) {
  for (const c of conditions) HUES.set(c.id, hue);
}

/** Lowest and highest time that a figure of `metric` shows. */
function extent(conditions, metric) {
  const values = conditions.flatMap((c) => {
    const m = c[metric];
    return m ? [m.max_ns, ...m.quantiles.flatMap((q) => [q.value_ns, q.low_ns, q.high_ns])] : [];
  }).filter((v) => v > 0);
  return values.length ? niceLog(Math.min(...values), Math.max(...values)) : null;
}
