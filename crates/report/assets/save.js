// Every figure as SVG and PNG, its numbers as CSV. Nothing leaves the page but by the reader's hand.

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-size", "font-weight", "font-family", "text-anchor", "paint-order", "vector-effect", "stroke-linecap"];

/** A copy that needs no style sheet. */
function plainCopy(picture) {
  const copy = picture.cloneNode(true);
  const [from, to] = [picture, copy].map((p) => [p, ...p.querySelectorAll("*")]);
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const key of KEPT) to[i].setAttribute(key, style.getPropertyValue(key));
    to[i].removeAttribute("tabindex");
    to[i].style.removeProperty("--c");
  });
  for (const node of copy.querySelectorAll(".hit")) node.remove();
  // A shape that is shown again has a look of its own, which another program would take from the first.
  for (const node of copy.querySelectorAll("use")) {
    const again = document.querySelector(node.getAttribute("href")).firstElementChild.cloneNode();
    for (const { name, value } of node.attributes) if (KEPT.includes(name)) again.setAttribute(name, value);
    again.setAttribute("transform", `${node.getAttribute("transform")} ${again.getAttribute("transform") ?? ""}`);
    node.replaceWith(again);
  }
  return copy;
}

/** All panels of a figure below one another, on paper. */
function wholePicture(figure) {
  const panels = [...figure.querySelectorAll(".picture > svg")].map((p) => ({ p, box: p.viewBox.baseVal }));
  const width = Math.max(...panels.map(({ box }) => box.width));
  const foot = panels.reduce((sum, { box }) => sum + box.height, 0), height = foot + 24;
  const paper = getComputedStyle(document.body).backgroundColor;
  const whole = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, svg("rect", { width, height, fill: paper }));
  let top = 0;
  for (const { p, box } of panels) {
    const copy = plainCopy(p);
    for (const [key, value] of Object.entries({ x: 0, y: top, width: box.width, height: box.height })) copy.setAttribute(key, value);
    whole.append(copy);
    top += box.height;
  }
  // A picture goes where the page does not: it says where it comes from, and whether it is to be trusted.
  const style = getComputedStyle(document.body), font = { "font-family": style.fontFamily, "font-size": 12, y: foot + 15 };
  const muted = getComputedStyle(document.querySelector("footer")).color;
  const cautions = [report.functional_only && "functional only", report.status !== "valid" && `record ${report.status}`].filter(Boolean);
  whole.append(svg("text", { ...font, x: 16, fill: muted }, `Tailbound ${report.run.recorded_by}, study ${report.study}, run ${report.run.id}`));
  whole.append(svg("text", { ...font, x: width - 16, "text-anchor": "end", fill: style.getPropertyValue("--warn") }, cautions.join(", ")));
  const source = new XMLSerializer().serializeToString(whole);
  return { width, height, source: '<?xml version="1.0" encoding="UTF-8"?>\n' + source };
}

function give(name, blob) {
  const link = element("a", { download: name, href: URL.createObjectURL(blob) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function toPng({ width, height, source }, then) {
  const image = new Image();
  image.onload = () => {
    const canvas = element("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    canvas.toBlob(then);
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(source);
}

/** RFC 4180; a cell that begins like a formula is one to a spreadsheet. */
function csv(rows) {
  const cell = (value) => {
    const words = typeof value === "string" && /^[=+@]/.test(value) ? `'${value}'` : String(value ?? "");
    return /[",\n\r]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
  };
  return rows.map((row) => row.map(cell).join(",") + "\r\n").join("");
}

/** Buttons under a figure. */
function saving(figure, id, rows) {
  const name = `${report.study}-${id}`;
  const button = (words, act) => {
    const node = element("button", { type: "button", "data-saves": words }, words);
    // Where there are words in place of a figure there is no picture to save.
    node.addEventListener("click", () => (words === "CSV" || figure.querySelector("svg")) && act());
    return node;
  };
  const box = element("div", { class: "save" }, "Save: ");
  if (figure.querySelector(".picture")) {
    box.append(button("SVG", () => give(`${name}.svg`, new Blob([wholePicture(figure).source], { type: "image/svg+xml" }))));
    box.append(button("PNG", () => toPng(wholePicture(figure), (blob) => give(`${name}.png`, blob))));
  }
  box.append(button("CSV", () => give(`${name}.csv`, new Blob([csv(rows())], { type: "text/csv" }))));
  figure.append(box);
}
