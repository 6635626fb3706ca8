// The report, and how its conditions fall into series and rows.

const report = JSON.parse(document.getElementById("report").textContent);

const METRICS = {
  round_trip: "round trip", from_intended: "from intended", out: "out", turnaround: "turnaround", back: "back",
  send_lateness: "send lateness", send_duration: "send duration", wake_to_sent: "woken to sent", wake_period: "wake period",
};

/** Conditions that were run. */
const measured = report.conditions.filter((c) => c.round_trip);

/** What the reader chose. `hidden` holds levels as "factor=level", `overlay` ids of conditions. */
const chosen = { metric: "round_trip", x: report.view.x, hidden: new Set(), overlay: new Set(), legs: null, loop: null, estimate: null };

/** Conditions of which no level was put away. */
function shown() {
  return measured.filter((c) => Object.entries(c.levels).every(([f, level]) => !chosen.hidden.has(`${f}=${level}`)));
}

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

/** Factors that can be an x axis: the one that the study names, and others whose levels are numbers. */
function axes() {
  const numeric = (f) => measured.every((c) => xValue(c, f) > 0);
  return [...new Set([report.view.x, ...VARIED.filter(numeric)])];
}

/** Series in the order of the study: conditions that differ in `factor` alone; one hue each. */
function seriesAlong(factor, conditions, without = []) {
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
  const all = seriesAlong(factor, measured);
  const outer = VARIED.find((f) => f !== factor);
  if (all.length <= 6 || !outer) return [{ title: "", series: all }];
  const levels = [...new Set(measured.map((c) => c.levels[outer]))];
  const within = (level) => measured.filter((c) => c.levels[outer] === level);
  return levels.map((level) => ({ title: `${outer} ${level}`, series: seriesAlong(factor, within(level), [outer]) }));
}

/** The same with the conditions that are shown; hues stay what they are. */
function shownPanels() {
  const there = new Set(shown());
  const some = ({ name, hue, conditions }) => ({ name, hue, conditions: conditions.filter((c) => there.has(c)) });
  const panels = panelsAlong(chosen.x).map(({ title, series }) => ({ title, series: series.map(some).filter((s) => s.conditions.length) }));
  return panels.filter((p) => p.series.length);
}

/** The hue of a condition, so that all figures agree. */
const HUES = new Map();
function setHues() {
  for (const { conditions, hue } of panelsAlong(chosen.x).flatMap((p) => p.series)) {
    for (const c of conditions) HUES.set(c.id, hue);
  }
}
setHues();

/** Conditions that are laid over one another. */
function overlaid() {
  return shown().filter((c) => chosen.overlay.has(c.id));
}

/** Hues of those: their own where these differ, otherwise one after another. */
function overlayHues() {
  const conditions = overlaid(), own = conditions.map((c) => HUES.get(c.id));
  const differ = new Set(own).size === own.length;
  return new Map(conditions.map((c, i) => [c.id, differ ? own[i] : i % 6]));
}

/** Lowest and highest time that a figure of `metric` shows. */
function extent(conditions, metric) {
  const values = conditions.flatMap((c) => {
    const m = c[metric];
    return m ? [m.max_ns, ...m.quantiles.flatMap((q) => [q.value_ns, q.low_ns, q.high_ns])] : [];
  }).filter((v) => v > 0);
  return values.length ? niceLog(Math.min(...values), Math.max(...values)) : null;
}
