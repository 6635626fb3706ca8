// Puts figures into the page, again when its width changes, and lets facts be searched.

document.body.append(tooltip);

const chosen = { metric: "round_trip", legs: null, loop: null };

/** Radio buttons over figures; only metrics that some condition has. */
function metricChoice(box) {
  const names = ["round_trip", "from_intended", "out", "turnaround", "back"].filter((m) => measured.some((c) => c[m]));
  if (names.length < 2) return;
  for (const name of names) {
    const input = element("input", { type: "radio", name: "metric", value: name });
    input.checked = name === chosen.metric;
    input.addEventListener("change", () => { chosen.metric = name; draw(); });
    box.append(element("label", {}, input, element("span", {}, METRICS[name])));
  }
}

/** The condition that a figure shows, the one with the worst first. */
function conditionChoice(box, figure, some, worst) {
  chosen[figure] = some.reduce((a, b) => (a && worst(a) >= worst(b) ? a : b), null);
  if (some.length < 2) return;
  const select = element("select", { "aria-label": "Condition" });
  for (const c of some) {
    const option = element("option", { value: c.id }, c.name);
    option.selected = c === chosen[figure];
    select.append(option);
  }
  select.addEventListener("change", () => {
    chosen[figure] = some.find((c) => c.id === Number(select.value));
    draw();
  });
  box.append(select);
}

function legsChoice(box) {
  conditionChoice(box, "legs", measured.filter((c) => c.worst.length), (c) => c.worst[0].from_intended_ns ?? c.worst[0].round_trip_ns);
}

function loopChoice(box) {
  conditionChoice(box, "loop", measured.filter((c) => loopTrials(c).length), (c) => c.wake_to_sent?.max_ns ?? 0);
}

/** On a narrow screen the ends of lines are out of sight: their hues are named above. */
function nameHues(box) {
  for (const { name, hue } of panelsAlong(report.view.x).flatMap((p) => p.series)) {
    if (name && HUES.size > 1) box.append(element("span", { class: `key s${hue}` }), name);
  }
}

function draw() {
  const into = (id) => document.querySelector(`#${id} .picture`);
  if (into("latency")) drawLatency(into("latency"), chosen.metric);
  if (into("ladder")) drawLadder(into("ladder"), chosen.metric);
  if (into("legs") && chosen.legs) drawLegs(into("legs"), chosen.legs);
  if (into("loop") && chosen.loop) drawLoop(into("loop"), chosen.loop);
  for (const shown of document.querySelectorAll("[data-shows=metric]")) shown.textContent = METRICS[chosen.metric];
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
document.querySelectorAll(".narrow-keys").forEach(nameHues);
document.querySelectorAll(".choose-legs").forEach(legsChoice);
document.querySelectorAll(".choose-loop").forEach(loopChoice);
document.querySelectorAll("#facts input").forEach(searchFacts);
draw();
let width = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  draw();
});
window.addEventListener("hashchange", unfold);
unfold();
