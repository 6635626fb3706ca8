// The sender's loop: each trial of a condition slot by slot, one panel per metric, from the lowest to the highest of each
// column's slots.

const LOOP_PANELS = [["wake_to_sent", "M2 woken to sent"], ["round_trip", "M3 round trip"], ["wake_period", "M4 wake-up to wake-up"]];

/** Trials of a condition that can be drawn. */
function loopTrials(condition) {
  return report.trials.filter((t) => condition.used_trial_ids.includes(t.id) && t.course?.slots);
}

function drawLoop(figure, condition) {
  const trials = loopTrials(condition);
  const panels = LOOP_PANELS.filter(([metric]) => trials.some((t) => t.course[metric].some(Boolean)));
  if (!panels.length) return figure.replaceChildren("No slot was sent.");
  figure.replaceChildren(...panels.map((panel, i) => loopPanel(condition, trials, panel, i === panels.length - 1, figure.clientWidth)));
}

function loopPanel(condition, trials, [metric, words], last, space) {
  const width = Math.max(640, space), top = 38, height = 178, foot = last ? 40 : 8;
  const plot = { left: 64, right: width - 28, top, bottom: height };
  const ranges = trials.flatMap((t) => t.course[metric].filter(Boolean));
  const domain = niceLog(Math.max(1, Math.min(...ranges.map((r) => r[0]))), Math.max(2, ...ranges.map((r) => r[1])));
  // Nothing, as a virtual clock has it, lies at the foot.
  const scale = logScale(...domain, plot.bottom, plot.top), y = (ns) => scale(Math.max(ns, domain[0]));
  const slots = Math.max(...trials.map((t) => t.course.slots));
  const x = linearScale(0, slots, plot.left, plot.right);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height + foot}`, role: "group", "aria-label": `${words} over the loop number` });
  picture.append(text(plot.left, 14, words, { class: "strong" }));
  const named = trials.length <= Math.floor((width - 280) / 66) ? trials : [];
  named.forEach((t, i) => picture.append(text(plot.left + 190 + 66 * i, 14, `repeat ${t.repeat + 1}`, { class: `end s${i % 6}` })));
  for (const tick of logTicks(...domain, 5)) {
    picture.append(svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y(tick), y2: y(tick) }));
    picture.append(text(plot.left - 8, y(tick) + 4, time(tick), { class: "tick", "text-anchor": "end" }));
  }
  picture.append(svg("line", { class: "axis", x1: plot.left, x2: plot.right, y1: plot.bottom, y2: plot.bottom }));
  if (last) {
    for (const tick of linearTicks(slots, 8)) {
      picture.append(text(x(tick), plot.bottom + 17, count(tick), { class: "tick", "text-anchor": "middle" }));
    }
    picture.append(text((plot.left + plot.right) / 2, plot.bottom + 35, "loop number (measured slots)", { class: "title", "text-anchor": "middle" }));
  }
  if (metric === "round_trip" && trials.some((t) => t.course.unanswered.some(Boolean))) {
    picture.append(text(plot.left - 8, plot.top - 9, "lost", { class: "tick", "text-anchor": "end" }));
  }
  const marks = [];
  trials.forEach((trial, i) => {
    const { course } = trial, hue = i % 6;
    const middle = (c) => x(Math.min(course.slots, (c + 0.5) * course.slots_per_column));
    const step = Math.max(1, Math.min(7, 0.8 * (plot.right - plot.left) / course[metric].length));
    // A little more at both ends, so that a column whose slots agree is seen; more where columns are few.
    const pad = step > 2 ? 1.5 : 0.5;
    const bar = ([low, high], c) => `M${middle(c).toFixed(1)},${(y(high) - pad).toFixed(1)}V${(y(low) + pad).toFixed(1)}`;
    const path = course[metric].map((range, c) => (range ? bar(range, c) : "")).join("");
    picture.append(svg("path", { class: `loop s${hue}`, "stroke-width": step.toFixed(2), d: path, "data-trial": trial.id, "data-metric": metric, "data-pad": pad }));
    if (metric === "round_trip") picture.append(...loopLost(trial, middle, plot, hue));
    const at = course[metric].reduce((a, range, c) => (range && (a < 0 || range[1] > course[metric][a][1]) ? c : a), -1);
    if (at >= 0) marks.push(loopMark(condition, trial, metric, words, at, middle(at), y(course[metric][at][1]), hue));
  });
  picture.append(...marks);
  byKeyboard(picture);
  return picture;
}

/** Ticks above the plot where slots were never answered. */
function loopLost(trial, middle, plot, hue) {
  const path = trial.course.unanswered.map((n, c) => (n ? `M${middle(c).toFixed(1)},${plot.top - 15}v7` : "")).join("");
  return path ? [svg("path", { class: `loop s${hue}`, "stroke-width": 1.5, d: path })] : [];
}

/** The worst column of a trial. */
function loopMark(condition, trial, metric, words, column, x, y, hue) {
  const { course } = trial, [low, high] = course[metric][column];
  const first = column * course.slots_per_column, end = Math.min(course.slots, first + course.slots_per_column) - 1;
  const lines = [
    `${words}, trial ${trial.id} (repeat ${trial.repeat + 1})`,
    `${time(high)}, the longest of this trial`,
    `loop ${count(first)}${end > first ? ` to ${count(end)}, the shortest there ${time(low)}` : ""}`,
    `exactly ${count(high)}${THIN}ns`,
  ];
  return readable(triangle(x, y, `s${hue}`), lines, { condition: condition.id, trial: trial.id, metric, column, valueNs: high });
}
