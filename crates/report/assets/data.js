// The report, what can be chosen, and what the reader chose.

const report = JSON.parse(document.getElementById("report").textContent);
const choices = JSON.parse(document.getElementById("choices").textContent);

const METRICS = Object.fromEntries(choices.metrics);
const VARIED = choices.varied;

/** Conditions that were run. */
const measured = report.conditions.filter((c) => c.round_trip);

/** What the reader chose. `hidden` holds levels as "factor=level", `overlay` ids of conditions, `range` shares of a trial. */
const chosen = {
  metric: "round_trip", x: report.view.x, hidden: new Set(), overlay: new Set(choices.overlay),
  legs: null, loop: null, estimate: null, trial: null, range: [0, 1],
};

/** Conditions of which no level was put away. */
function shown() {
  return measured.filter((c) => Object.entries(c.levels).every(([f, level]) => !chosen.hidden.has(`${f}=${level}`)));
}

/** Conditions that are laid over one another. */
function overlaid() {
  return shown().filter((c) => chosen.overlay.has(c.id));
}

/** The hue of each condition, the same in all figures. */
function hues() {
  return choices.axes.find((a) => a.x === chosen.x)?.hues ?? {};
}

/** Hues of overlaid conditions: their own where these differ, otherwise one after another. */
function overlayHues() {
  const ids = overlaid().map((c) => c.id), own = ids.map((id) => hues()[id]);
  const differ = new Set(own).size === own.length;
  return Object.fromEntries(ids.map((id, i) => [id, differ ? own[i] : i % 6]));
}

/** Conditions whose tail was estimated, or not for a reason. */
function estimated() {
  return shown().filter((c) => c[chosen.metric]?.n && c[chosen.metric].tail);
}

/** Whose estimate is shown: the one that was chosen, otherwise the latest. */
function estimateOf() {
  const some = estimated(), level = (c) => c[chosen.metric].tail.level_ns ?? -1;
  return some.find((c) => c.id === chosen.estimate) ?? some.reduce((a, b) => (a && level(a) >= level(b) ? a : b), null);
}

/** The metric of the page where the trial was followed in it, otherwise the round trip. */
function timeMetric(trial) {
  return chosen.metric === "from_intended" && trial.over_time.from_intended ? "from_intended" : "round_trip";
}

/** Trials of a condition that can be drawn in the loop. */
function loopTrials(condition) {
  return report.trials.filter((t) => condition.used_trial_ids.includes(t.id) && t.course?.slots);
}
