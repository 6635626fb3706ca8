// SVG marks that can be read: by pointing, by touch and by keyboard.

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** A sentence: what stands between back quotes is set as code. */
function prose(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

const tooltip = element("div", { id: "tooltip", role: "status", hidden: "" });

/** Shows what a mark says, beside it and within the window. */
function show(mark) {
  tooltip.replaceChildren(...mark.lines.map((line, i) => element(i ? "div" : "strong", {}, line)));
  for (const key of Object.keys(tooltip.dataset)) delete tooltip.dataset[key];
  Object.assign(tooltip.dataset, mark.dataset);
  tooltip.hidden = false;
  const at = (mark.querySelector(".hit") || mark).getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = tooltip;
  const left = Math.min(Math.max(8, at.left + at.width / 2 - width / 2), document.documentElement.clientWidth - width - 8);
  const above = at.top - height - 8;
  tooltip.style.left = `${left + window.scrollX}px`;
  tooltip.style.top = `${(above > 4 ? above : at.bottom + 8) + window.scrollY}px`;
  mark.classList.add("shown");
}

function hide(mark) {
  tooltip.hidden = true;
  mark.classList.remove("shown");
}

/** A mark with its tooltip: `lines` are shown, `data` can be read by a program. */
function readable(node, lines, data) {
  const mark = svg("g", { class: "mark", tabindex: -1, role: "img", "aria-label": lines.join(", ") }, node);
  if (node.classList.contains("dot") || node.classList.contains("triangle")) {
    const box = node.place;
    mark.append(svg("circle", { class: "hit", cx: box[0], cy: box[1], r: 9 }));
  }
  mark.lines = lines;
  for (const [key, value] of Object.entries(data)) {
    if (value !== undefined && value !== null) mark.dataset[key] = value;
  }
  mark.addEventListener("pointerenter", () => show(mark));
  mark.addEventListener("pointerleave", () => document.activeElement === mark || hide(mark));
  mark.addEventListener("focus", () => show(mark));
  mark.addEventListener("blur", () => hide(mark));
  return mark;
}

function dot(x, y, r, kind) {
  const node = svg("circle", { class: `dot ${kind}`, cx: x, cy: y, r });
  node.place = [x, y];
  return node;
}

function triangle(x, y, kind) {
  const node = svg("path", { class: `triangle ${kind}`, d: `M${x},${y - 5}l5,9h-10z` });
  node.place = [x, y];
  return node;
}

/** One tab stop per figure; arrow keys go from mark to mark. */
function byKeyboard(picture) {
  const marks = [...picture.querySelectorAll(".mark")];
  if (marks.length) marks[0].setAttribute("tabindex", 0);
  picture.addEventListener("keydown", (event) => {
    const at = marks.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && at >= 0) return marks[at].blur();
    if (at < 0 || !step) return;
    event.preventDefault();
    marks[at].setAttribute("tabindex", -1);
    const next = marks[(at + step + marks.length) % marks.length];
    next.setAttribute("tabindex", 0);
    next.focus();
  });
}

function text(x, y, words, attributes = {}) {
  return svg("text", { x, y, ...attributes }, words);
}

/** Moves labels apart, as little as is needed; each has `y` and gets `at`. */
function spread(labels, gap, low, high) {
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((l, i) => { l.at = Math.max(l.y, i ? labels[i - 1].at + gap : low); });
  for (let i = labels.length - 1; i >= 0; i--) {
    labels[i].at = Math.min(labels[i].at, i < labels.length - 1 ? labels[i + 1].at - gap : high);
  }
  return labels;
}

/** What a quantile says, for a tooltip. */
function quantileLines(name, metric, q, figures) {
  const rare = oneIn(q.q);
  const lines = [name, `${metric}, ${label(q.q)}${rare && q.q > 0.5 ? ` (${rare} is later)` : ""}`];
  if (q.needs) return [...lines, `needs ${count(q.needs)} messages, has ${count(figures.scheduled)}`];
  if (q.beyond) return [...lines, `later than every answer: ${beyondWords(q.beyond)}`];
  const unit = unitOf(q.value_ns);
  const high = q.high_ns === null ? "never" : time(q.high_ns, unit);
  lines.push(`${time(q.value_ns, unit)} (95${THIN}%: ${time(q.low_ns, unit)} to ${high})`);
  if (q.effective_n < figures.scheduled) lines.push(`messages depend on each other: worth ${count(q.effective_n)}`);
  if (q.too_narrow) lines.push("the interval is still too narrow");
  lines.push(`exactly ${count(q.value_ns)}${THIN}ns, n = ${count(figures.scheduled)}`);
  return lines;
}

function quantileData(condition, metric, q) {
  return {
    condition: condition.id, metric, quantile: q.q, valueNs: q.value_ns ?? undefined,
    lowNs: q.low_ns, highNs: q.high_ns, needs: q.needs, beyond: q.beyond,
  };
}

function maxMark(x, y, condition, name, metric, words, figures, kind) {
  const lines = [name, `${words}, the worst of ${count(figures.n)}`, time(figures.max_ns)];
  if (figures.rule_of_three) lines.push(`at most 1 in ${count(Math.floor(1 / figures.rule_of_three))} is later (95${THIN}%)`);
  lines.push(`exactly ${count(figures.max_ns)}${THIN}ns`);
  const data = { condition: condition.id, metric, quantile: "max", valueNs: figures.max_ns };
  return readable(triangle(x, y, kind), lines, data);
}
