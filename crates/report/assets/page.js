// Puts figures into the page, again when its width changes, and lets facts be searched.

document.body.append(tooltip);

/** Radio buttons over a figure. */
function radios(box, group, names, words, act) {
  if (names.length < 2) return;
  for (const name of names) {
    const input = element("input", { type: "radio", name: group, value: name });
    input.checked = name === chosen[group];
    input.addEventListener("change", () => { chosen[group] = name; act?.(); draw(); });
    box.append(element("label", {}, input, element("span", {}, words(name))));
  }
}

/** Only metrics that some condition has. */
function metricChoice(box) {
  const names = ["round_trip", "from_intended", "out", "turnaround", "back"].filter((m) => measured.some((c) => c[m]));
  radios(box, "metric", names, (m) => METRICS[m]);
}

function axisChoice(box) {
  radios(box, "x", axes(), (f) => `against ${f}`, () => { HUES.clear(); setHues(); nameHues(); });
}

function check(box, words, checked, act, hue) {
  const input = element("input", { type: "checkbox" });
  input.checked = checked;
  input.addEventListener("change", () => { act(input.checked); draw(); });
  const key = hue === undefined ? [] : [element("i", { class: `key s${hue}` })];
  box.append(element("label", {}, input, element("span", {}, ...key, words)));
  return input;
}

/** One row of levels per factor that differs: what is put away is in no figure. */
function levelChoice(box) {
  for (const factor of VARIED) {
    const row = element("div", { class: "choose", role: "group", "aria-label": factor }, element("span", { class: "name" }, factor));
    for (const level of new Set(measured.map((c) => c.levels[factor]).filter(Boolean))) {
      const name = `${factor}=${level}`;
      check(row, level, true, (on) => { if (on) chosen.hidden.delete(name); else chosen.hidden.add(name); overlayChoice(); });
    }
    box.append(row);
  }
}

/** Conditions to lay over one another, six at most. */
const OVERLAY_MOST = 6;
function firstOverlay() {
  if (measured.length <= OVERLAY_MOST) return measured;
  const last = panelsAlong(chosen.x).flatMap((p) => p.series).map((s) => s.conditions.at(-1));
  return last.slice(0, OVERLAY_MOST);
}
for (const c of firstOverlay()) chosen.overlay.add(c.id);

function overlayChoice() {
  const hues = overlayHues(), full = overlaid().length >= OVERLAY_MOST;
  for (const box of document.querySelectorAll(".choose-overlay")) {
    box.replaceChildren();
    if (measured.length < 2) continue;
    for (const c of shown()) {
      const on = chosen.overlay.has(c.id);
      const act = (yes) => { if (yes) chosen.overlay.add(c.id); else chosen.overlay.delete(c.id); overlayChoice(); };
      const input = check(box, shortName(c), on, act, on ? hues.get(c.id) : undefined);
      input.disabled = full && !on;
    }
  }
}

/** Which trial is followed over time, and how much of it. */
function timeChoice(box) {
  const trials = (c) => report.trials.filter((t) => t.over_time?.slots && t.condition === c.id);
  const some = measured.filter((c) => trials(c).length);
  chosen.range = [0, 1];
  const repeats = element("select", { "aria-label": "Trial" });
  const offer = () => {
    const mine = trials(chosen.time);
    chosen.trial = mine.find((t) => t.id === chosen.time.worst[0]?.trial) ?? mine[0];
    repeats.replaceChildren(...mine.map((t) => element("option", { value: t.id, ...(t === chosen.trial ? { selected: "" } : {}) }, `trial ${t.id} (repeat ${t.repeat + 1})`)));
    repeats.hidden = mine.length < 2;
    chosen.range = [0, 1];
  };
  conditionChoice(box, "time", some, (c) => c.worst[0]?.from_intended_ns ?? c.worst[0]?.round_trip_ns ?? 0, offer);
  if (!chosen.time) return;
  offer();
  repeats.addEventListener("change", () => { chosen.trial = report.trials.find((t) => t.id === Number(repeats.value)); chosen.range = [0, 1]; draw(); });
  const range = element("span", { class: "range" });
  for (const [name, value] of [["from", 0], ["to", 1000]]) {
    const input = element("input", { type: "range", min: 0, max: 1000, value, name, "aria-label": `range ${name}` });
    input.addEventListener("input", () => {
      const at = Number(input.value) / 1000;
      chosen.range = name === "from" ? [Math.min(at, 0.999), Math.max(chosen.range[1], at + 0.001)] : [Math.min(chosen.range[0], at - 0.001), Math.max(at, 0.001)].map((s) => Math.max(0, s));
      draw(["time"]);
    });
    range.append(element("label", {}, `${name} `, input));
  }
  for (const [words, times] of [["zoom in", 0.5], ["zoom out", 2], ["whole", Infinity]]) {
    const button = element("button", { type: "button" }, words);
    button.addEventListener("click", () => { zoomTime(times, (chosen.range[0] + chosen.range[1]) / 2); draw(["time"]); });
    range.append(button);
  }
  box.append(repeats, range);
}

/** The condition that a figure shows, the one with the worst first. */
function conditionChoice(box, figure, some, worst, then, all) {
  chosen[figure] = some.reduce((a, b) => (a && worst(a) >= worst(b) ? a : b), null);
  if (some.length < 2) return;
  const select = element("select", { "aria-label": "Condition" });
  for (const c of some) {
    const option = element("option", { value: c.id }, c.name);
    option.selected = c === chosen[figure];
    select.append(option);
  }
  if (all) select.append(element("option", { value: -1 }, all));
  select.addEventListener("change", () => {
    chosen[figure] = some.find((c) => c.id === Number(select.value)) ?? null;
    then?.();
    draw();
  });
  box.append(select);
}

/** Whose tail is estimated. */
function estimateChoice(box) {
  const some = measured.filter((c) => ["round_trip", "from_intended", "out"].some((m) => c[m]?.tail));
  if (some.length < 2) return;
  const select = element("select", { "aria-label": "Condition" }, ...some.map((c) => element("option", { value: c.id }, c.name)));
  select.addEventListener("change", () => { chosen.estimate = Number(select.value); draw(["tail-estimate"]); });
  box.append(select);
}

function legsChoice(box) {
  conditionChoice(box, "legs", measured.filter((c) => c.worst.length), (c) => c.worst[0].from_intended_ns ?? c.worst[0].round_trip_ns, null, "the median message of every condition");
}

function loopChoice(box) {
  conditionChoice(box, "loop", measured.filter((c) => loopTrials(c).length), (c) => c.wake_to_sent?.max_ns ?? 0);
}

/** On a narrow screen the ends of lines are out of sight: their hues are named above. */
function nameHues() {
  for (const box of document.querySelectorAll(".narrow-keys")) {
    box.replaceChildren();
    for (const { name, hue } of panelsAlong(chosen.x).flatMap((p) => p.series)) {
      if (name && HUES.size > 1) box.append(element("span", { class: `key s${hue}` }), name);
    }
  }
}

/** What is drawn where, and the numbers of it. */
const FIGURES = {
  latency: [(into) => drawLatency(into, chosen.metric), () => quantileRows(chosen.metric)],
  tail: [(into) => drawTail(into, chosen.metric), () => tailRows(chosen.metric)],
  "tail-estimate": [(into) => drawEstimate(into, chosen.metric), () => estimateRows(chosen.metric)],
  ladder: [(into) => drawLadder(into, chosen.metric), () => quantileRows(chosen.metric)],
  histogram: [(into) => drawHistogram(into, chosen.metric), () => histogramRows(chosen.metric)],
  time: [(into) => chosen.time && drawTime(into), () => timeRows()],
  legs: [(into) => drawLegs(into, chosen.legs), () => legRows(chosen.legs)],
  worst: [(into) => drawWorst(into, chosen.legs), () => worstRows(chosen.legs)],
  loop: [(into) => chosen.loop && drawLoop(into, chosen.loop), () => loopRows(chosen.loop)],
};

function draw(some = Object.keys(FIGURES)) {
  for (const id of some) {
    const into = document.querySelector(`#${id} .picture, #${id} .rows`);
    if (into) FIGURES[id][0](into);
  }
  for (const node of document.querySelectorAll("[data-shows=metric]")) node.textContent = METRICS[chosen.metric];
  for (const node of document.querySelectorAll("[data-shows=x]")) node.textContent = chosen.x;
}

function searchFacts(input) {
  const rows = [...document.querySelectorAll("#facts tbody tr")];
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    if (wanted) for (const box of document.querySelectorAll("#facts details")) box.open = true;
  });
}

/** A link into a folded part unfolds it. */
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  if (target) target.scrollIntoView();
}

document.querySelectorAll(".choose-metric").forEach(metricChoice);
document.querySelectorAll(".choose-x").forEach(axisChoice);
document.querySelectorAll(".choose-levels").forEach(levelChoice);
document.querySelectorAll(".choose-time").forEach(timeChoice);
nameHues();
overlayChoice();
document.querySelectorAll(".choose-estimate").forEach(estimateChoice);
document.querySelectorAll(".choose-legs").forEach(legsChoice);
document.querySelectorAll(".choose-loop").forEach(loopChoice);
document.querySelectorAll("#facts input").forEach(searchFacts);
for (const [id, [, rows]] of Object.entries(FIGURES)) {
  const figure = document.querySelector(`#${id} figure`);
  if (figure) saving(figure, id, rows);
}
for (const figure of document.querySelectorAll("#flow-axis figure")) saving(figure, "flow", flowRows);
draw();
let width = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  draw();
});
window.addEventListener("hashchange", unfold);
unfold();
