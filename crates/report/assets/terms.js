// Terms are explained where they are: by pointing, by touch and by keyboard. On paper, the definitions at the end explain them.

const TERMS = JSON.parse(document.getElementById("terms").textContent);

/** Where terms are looked for: heads of tables, headings, and sentences that introduce something. */
const WITH_TERMS = ".tile p, .lead, th, figcaption, .findings li, .choose-metric span, #legs .causes > li, .keys";

/** The explanation of a word; quantiles share one. */
function meaningOf(word) {
  const known = (w) => TERMS[w] ?? TERMS[w.toLowerCase()];
  return known(word) ?? known(word.replace(/s$/, "")) ?? (/^p\d/.test(word) ? TERMS.p99 : undefined);
}

/** Words that may be terms, the longest first: `round trip` before `trip`. */
const TERM_WORDS = (() => {
  const names = Object.keys(TERMS).filter((name) => !/^p\d/.test(name)).sort((a, b) => b.length - a.length);
  return new RegExp(`(?<![\\w.-])(?:p\\d+(?:\\.\\d+)?|(?:${names.join("|")})s?)(?![\\w-])`, "gi");
})();

/** Marks the first place of each term below a node. */
function explain(root) {
  const seen = new Set();
  for (const box of root.querySelectorAll(WITH_TERMS)) {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode()) if (!walker.currentNode.parentNode.closest("code, a, summary, button, svg, dfn")) texts.push(walker.currentNode);
    for (const text of texts) markTerms(text, seen);
  }
}

function markTerms(text, seen) {
  const parts = [];
  let from = 0;
  for (const { 0: word, index } of text.data.matchAll(TERM_WORDS)) {
    const meaning = meaningOf(word);
    if (!meaning || seen.has(meaning)) continue;
    seen.add(meaning);
    const node = element("dfn", { tabindex: 0, "data-title": word, "data-lines": meaning }, word);
    for (const [kind, act] of [["pointerenter", show], ["focus", show], ["pointerleave", hide], ["blur", hide]]) node.addEventListener(kind, () => act(node));
    node.addEventListener("click", () => { node.focus(); show(node); });
    node.addEventListener("keydown", ({ key }) => key === "Escape" && hide(node));
    parts.push(text.data.slice(from, index), node);
    from = index + word.length;
  }
  if (parts.length) text.replaceWith(...parts, text.data.slice(from));
}
