// Marks of charts can be read: by pointing, by touch and by keyboard.

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

/** What a bar of the histogram stands for; there are too many for each to carry its words. */
function barLines({ condition, metric, bucket, count: n }) {
  const figures = report.conditions[condition][metric], [low, high] = figures.histogram.find((b) => b[0] === Number(bucket));
  return `${count(n)} of ${count(figures.n)} messages\n${METRICS[metric]} ${time(low)} to ${time(high)}`;
}

/** What a mark says: its condition or message first. */
function linesOf({ dataset: { title, lines, valueNs } }) {
  return [title, ...(lines ?? "").split("\n"), valueNs && `exactly ${count(valueNs)}${THIN}ns`].filter(Boolean);
}

/** Shows what a mark says, beside it and within the window. */
function show(mark) {
  tooltip.replaceChildren(...linesOf(mark).map((line, i) => element(i ? "div" : "strong", {}, line)));
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

/** Makes the marks of a picture readable: what is true of a mark's group and picture is true of the mark. */
function readable(picture) {
  for (const mark of picture.querySelectorAll(".mark")) {
    const group = mark.parentNode.closest("[data-condition]");
    const known = { metric: picture.dataset.metric, ...group?.dataset, ...mark.dataset };
    for (const [key, value] of Object.entries(known)) if (value !== undefined) mark.dataset[key] = value;
    if (mark.dataset.bucket) mark.dataset.lines ??= barLines(mark.dataset);
    for (const [key, value] of Object.entries({ tabindex: -1, role: "img", "aria-label": linesOf(mark).join(", ") })) {
      mark.setAttribute(key, value);
    }
    // A dot is small: the room around it is part of the mark.
    const box = mark.querySelector(".dot, .triangle")?.getBBox(), triangle = mark.querySelector(".triangle");
    if (box) {
      const [cx, cy] = [box.x + box.width / 2, triangle ? box.y + 5 : box.y + box.height / 2];
      mark.append(svg("circle", { class: "hit", cx, cy, r: 9 }));
    }
    mark.addEventListener("focus", () => show(mark));
    mark.addEventListener("blur", () => hide(mark));
  }
  picture.querySelector(".mark")?.setAttribute("tabindex", 0);
}

/** The mark at a point of the window. Where the rooms around several dots overlap, it is the mark of the nearest dot. */
function markAt(x, y) {
  const marks = new Set(document.elementsFromPoint(x, y).map((node) => node.closest(".mark")).filter(Boolean));
  const away = (mark) => {
    const { left, top, width, height } = mark.querySelector(".hit").getBoundingClientRect();
    return Math.hypot(left + width / 2 - x, top + height / 2 - y);
  };
  const dots = [...marks].filter((mark) => mark.querySelector(".hit"));
  return dots.length ? dots.reduce((best, mark) => (away(mark) < away(best) ? mark : best)) : [...marks][0];
}

/** Shows the mark at which the pointer is. */
function byPointer(picture) {
  let shown;
  const point = (mark) => {
    if (mark === shown) return;
    if (shown && document.activeElement !== shown) hide(shown);
    shown = mark;
    if (mark) show(mark);
  };
  for (const kind of ["pointermove", "pointerdown"]) {
    picture.addEventListener(kind, (event) => point(markAt(event.clientX, event.clientY)));
  }
  picture.addEventListener("pointerleave", () => point());
}

/** Lets marks be pointed at; one tab stop per figure, and arrow keys go from mark to mark. Once for each picture. */
function byHand(picture) {
  byPointer(picture);
  picture.addEventListener("keydown", (event) => {
    const marks = [...picture.querySelectorAll(".mark")], at = marks.indexOf(document.activeElement);
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
