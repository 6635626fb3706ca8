// What the reader can choose, and lets facts be searched.

document.body.append(tooltip);

/** Conditions to lay over one another, six at most. */
const OVERLAY_MOST = 6;

/** Takes what a control says over; false if it is no choice. */
function choose({ name, value, checked, dataset }) {
  const put = (into, what, on) => { if (on) into.add(what); else into.delete(what); };
  if (dataset.level) put(chosen.hidden, dataset.level, !checked);
  else if (dataset.overlay) put(chosen.overlay, Number(dataset.overlay), checked);
  else if (name === "metric" || name === "x") chosen[name] = value;
  else if (name === "legs" || name === "loop") chosen[name] = report.conditions[value] ?? null;
  else if (name === "tail-estimate") chosen.estimate = Number(value);
  else if (name === "trial") chosen.trial = report.trials.find((t) => t.id === Number(value));
  else if (name === "time") chosen.trial = trialsOf(Number(value))[0];
  else return false;
  if (name === "trial" || name === "time") chosen.range = [0, 1];
  return true;
}

/** Trials of a condition that can be followed over time, that of its worst message first. */
function trialsOf(id) {
  const worst = (t) => t.id === report.conditions[id].worst[0]?.trial;
  return report.trials.filter((t) => t.over_time?.slots && t.condition === id).sort((a, b) => worst(b) - worst(a));
}

/** What the figures begin with is what is chosen. */
function begin() {
  const of = (id, name) => document.querySelector(`#${id} .picture`)?.dataset[name];
  chosen.legs = report.conditions[of("legs", "of")] ?? null;
  chosen.loop = report.conditions[of("loop", "of")] ?? null;
  chosen.trial = report.trials.find((t) => String(t.id) === of("time", "trial"));
}

/** Controls say what is chosen, and offer what there is. */
function setControls() {
  const own = overlayHues(), full = overlaid().length >= OVERLAY_MOST, there = new Set(shown().map((c) => c.id));
  for (const input of document.querySelectorAll("[data-overlay]")) {
    const id = Number(input.dataset.overlay);
    input.checked = chosen.overlay.has(id);
    input.disabled = full && !input.checked;
    input.parentNode.hidden = !there.has(id);
    input.parentNode.querySelector("i").className = id in own ? `key s${own[id]}` : "";
  }
  const trial = chosen.trial, of = { legs: chosen.legs?.id ?? "all", loop: chosen.loop?.id, time: trial?.condition, trial: trial?.id };
  for (const select of document.querySelectorAll(".choose select")) {
    select.value = { ...of, "tail-estimate": estimateOf()?.id }[select.name] ?? "";
    if (select.name !== "trial" || !trial) continue;
    const mine = trialsOf(trial.condition).map((t) => String(t.id));
    for (const option of select.options) option.hidden = option.disabled = !mine.includes(option.value);
    select.hidden = mine.length < 2;
  }
}

/** The range of a trial follows its two sliders; one of them moves the other rather than pass it. */
function slide({ name, value }) {
  const at = Number(value) / 1000, [from, to] = chosen.range;
  if (name === "from") chosen.range = [Math.min(at, 0.999), Math.max(to, at + 0.001)];
  else chosen.range = [Math.max(0, Math.min(from, at - 0.001)), Math.max(at, 0.001)];
  drawTime(document.querySelector("#time .picture"));
}

/** On a narrow screen the ends of lines are out of sight: their hues are named above. */
function nameHues() {
  for (const box of document.querySelectorAll(".narrow-keys")) {
    box.replaceChildren();
    for (const [name, hue] of choices.axes.find((a) => a.x === chosen.x).series) {
      if (name && measured.length > 1) box.append(element("span", { class: `key s${hue}` }), name);
    }
  }
}

/** The numbers of each figure. */
const ROWS = {
  latency: () => quantileRows(chosen.metric), tail: () => tailRows(chosen.metric), "tail-estimate": () => estimateRows(chosen.metric),
  ladder: () => quantileRows(chosen.metric), histogram: () => histogramRows(chosen.metric), time: () => timeRows(),
  legs: () => legRows(chosen.legs), worst: () => worstRows(chosen.legs), loop: () => loopRows(chosen.loop),
};

/** Pictures without choices, as they were drawn. */
const DRAWN = new Map();

function draw() {
  setControls();
  nameHues();
  for (const id of Object.keys(FOLLOWS)) {
    const picture = document.querySelector(`#${id} .picture`);
    if (picture) showVariant(id, picture);
  }
  for (const [picture, drawn] of DRAWN) {
    picture.replaceChildren(...drawn.map((node) => node.cloneNode(true)));
    fitPicture(picture);
    readable(picture);
  }
  for (const rows of document.querySelectorAll("#worst .rows")) drawWorst(rows, chosen.legs);
  reachable();
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

/** Copies a text of the page, and says so; where the browser refuses, the text is selected. */
async function copyText(button) {
  const text = document.querySelector(button.dataset.copies), words = button.textContent;
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = words; }, 1500);
  } catch {
    for (let node = text; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    getSelection().selectAllChildren(text);
  }
}

/** A link into a folded part unfolds it. */
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  if (target) target.scrollIntoView();
}

begin();
document.addEventListener("change", ({ target }) => choose(target) && draw());
for (const input of document.querySelectorAll(".range input")) input.addEventListener("input", () => slide(input));
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => {
    zoomTime(Number(button.dataset.zoom), (chosen.range[0] + chosen.range[1]) / 2);
    drawTime(document.querySelector("#time .picture"));
  });
}
document.querySelectorAll("#facts input").forEach(searchFacts);
for (const picture of document.querySelectorAll(".picture")) {
  if (Object.hasOwn(FOLLOWS, picture.closest("section").id)) toTemplate(picture);
  else byHand(picture), DRAWN.set(picture, [...picture.childNodes]);
}
for (const [id, rows] of Object.entries(ROWS)) {
  const figure = document.querySelector(`#${id} figure`);
  if (figure) saving(figure, id, rows);
}
for (const figure of document.querySelectorAll("#flow-axis figure")) saving(figure, "flow", flowRows);
draw();
document.querySelectorAll("main > section").forEach(explain);
for (const button of document.querySelectorAll("[data-copies]")) button.addEventListener("click", () => copyText(button));
// A link of the navigation closes its group, and so does a press elsewhere.
document.addEventListener("click", ({ target }) => {
  for (const group of document.querySelectorAll("nav details[open]")) if (target.closest("nav a") || !group.contains(target)) group.open = false;
});
document.addEventListener("keydown", ({ key }) => key === "Escape" && document.querySelectorAll("nav details").forEach((group) => { group.open = false; }));
followWidth(draw);
window.addEventListener("hashchange", unfold);
unfold();
