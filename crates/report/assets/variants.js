// Every chart is drawn once for each value of its choices and waits in a template. The one that was chosen is copied into the
// figure, without the conditions that are put away.

/** The choice that each figure follows, by the names of its templates; `of` is a condition. */
const FOLLOWS = {
  latency: () => ({ metric: chosen.metric, x: chosen.x }),
  tail: () => ({ metric: chosen.metric }),
  "tail-estimate": () => ({ metric: chosen.metric, of: estimateOf()?.id }),
  ladder: () => ({ metric: chosen.metric }),
  histogram: () => ({ metric: chosen.metric }),
  time: () => chosen.trial && ({ metric: timeMetric(chosen.trial), trial: chosen.trial.id }),
  legs: () => ({ of: chosen.legs?.id ?? "all" }),
  loop: () => ({ of: chosen.loop?.id }),
};

/** Figures in which conditions are laid over one another. */
const OVERLAYS = ["tail", "histogram"];

/** The picture that a figure begins with becomes a template like the others. */
function toTemplate(picture) {
  const template = element("template");
  Object.assign(template.dataset, picture.dataset);
  template.content.append(...picture.childNodes);
  picture.after(template);
  byHand(picture);
}

function showVariant(id, picture) {
  const wanted = FOLLOWS[id]() || {};
  const fits = ({ dataset }) => Object.entries(wanted).every(([key, value]) => (dataset[key] ?? "") === String(value ?? ""));
  const template = [...picture.parentNode.querySelectorAll("template")].find(fits);
  if (!template) return picture.replaceChildren("Nothing to show.");
  for (const key of Object.keys(picture.dataset)) delete picture.dataset[key];
  Object.assign(picture.dataset, template.dataset);
  picture.replaceChildren(template.content.cloneNode(true));
  const overlay = OVERLAYS.includes(id), some = overlay ? overlaid() : shown();
  // A figure of one condition shows it, whatever is put away elsewhere.
  const one = id === "time" || id === "loop" || (id === "legs" && chosen.legs);
  const there = new Set((one ? measured : some).map((c) => String(c.id)));
  if (!there.size) return picture.replaceChildren(overlay ? "Choose a condition." : "Nothing to show.");
  leaveOut(picture, there);
  setHues(picture, overlay ? overlayHues() : hues());
  for (const box of picture.querySelectorAll(".names")) setNames(box);
  if (!picture.children.length && !picture.textContent.trim()) picture.replaceChildren("Nothing to show.");
  fitPicture(picture);
  readable(picture);
  if (id === "time" && picture.querySelector(".cursor")) { prepareTime(picture); drawTime(picture); }
}

/** Leaves out conditions that are not there: their marks, their places in lines, names of lines that are gone. */
function leaveOut(picture, there) {
  for (const node of picture.querySelectorAll("[data-condition]")) if (!there.has(node.dataset.condition)) node.remove();
  for (const node of picture.querySelectorAll("[data-points]")) {
    const ids = node.dataset.points.split(" ").filter(Boolean), kept = ids.filter((id) => there.has(id));
    if (node.tagName === "path" && kept.length < ids.length && kept.length > 1) {
      const d = node.getAttribute("d"), closed = d.endsWith("z");
      const points = d.slice(1).replace("z", "").split("L").filter((_, i) => there.has(ids[i]));
      node.setAttribute("d", `M${points.join("L")}${closed ? "z" : ""}`);
    }
    // A line joins two places at least, and an area has two sides.
    const least = node.tagName !== "path" ? 1 : node.classList.contains("band") ? 3 : 2;
    if (ids.length && kept.length < least) node.remove();
  }
  // A panel without a name has no line left.
  for (const box of picture.querySelectorAll(".names")) if (!box.children.length) box.closest("svg").remove();
}

/** The hues of conditions follow from the x axis, and from which are laid over one another. */
function setHues(picture, hues) {
  for (const node of picture.querySelectorAll(".own")) node.style.setProperty("--c", `var(--s${hues[node.dataset.condition]})`);
}

/** Moves names of lines apart, as little as is needed. */
function setNames(box) {
  const { gap, low, high } = box.dataset, names = [...box.children].map((node) => {
    const leader = node.querySelector("path");
    return { node, leader, y: Number(leader.getAttribute("d").match(/,([\d.-]+)L/)[1]) };
  });
  names.sort((a, b) => a.y - b.y);
  names.forEach((n, i) => { n.at = Math.max(n.y, i ? names[i - 1].at + Number(gap) : Number(low)); });
  for (let i = names.length - 1; i >= 0; i--) {
    names[i].at = Math.min(names[i].at, i < names.length - 1 ? names[i + 1].at - gap : Number(high));
  }
  for (const { node, leader, at } of names) {
    leader.setAttribute("d", leader.getAttribute("d").replace(/L([\d.]+),[\d.-]+h/, `L$1,${at.toFixed(1)}h`));
    node.querySelector("text").setAttribute("y", at + 4);
  }
}
