// The worst messages: why they were late, and every stamp.

/** Stamps of a message, each after it was due (stop-and-wait: after its send call began). */
function stamps(message) {
  const begin = message.intended_ns ?? message.send_begin_ns;
  const send = message.send_begin_ns - begin;
  const plus = (from, ns) => (from == null || ns == null ? null : from + ns);
  const sendEnd = plus(send, message.send_duration_ns), echoIn = plus(send, message.out_ns);
  return {
    woken: plus(sendEnd, message.wake_to_sent_ns == null ? null : -message.wake_to_sent_ns), send, send_end: sendEnd,
    echo_in: echoIn, echo_end: plus(echoIn, message.turnaround_ns), received: plus(send, message.round_trip_ns),
  };
}

/** The number of the incident to which a message belongs, if the report has it; otherwise -1. */
function incidentOf(condition, message) {
  const due = message.intended_ns ?? message.send_begin_ns;
  return (condition.incidents ?? []).findIndex((i) => i.trial === message.trial && i.begin_ns <= due && due <= i.end_ns);
}

const STAMPS = [
  ["woken", "woken"], ["send", "send call"], ["send_end", "sent"], ["echo_in", "at the pong"], ["echo_end", "answered"], ["received", "received"],
];

/** Microseconds to the nanosecond. */
function micros(ns) {
  if (ns == null) return "";
  const [whole, part] = (Math.abs(ns) / 1000).toFixed(3).split(".");
  return `${ns < 0 ? "−" : ""}${count(whole)}.${part}`;
}

function drawWorst(box, condition) {
  const messages = condition?.worst ?? [];
  if (!messages.length) return box.replaceChildren();
  const head = (words, unit, left) => {
    const cell = element("th", { scope: "col" }, words);
    if (left) cell.className = "l";
    if (unit) cell.append(" ", element("span", { class: "unit" }, unit));
    return cell;
  };
  const stalls = choices.stalls[condition.id] ?? {}, begun = new Map();
  const described = messages.some((m) => incidentOf(condition, m) >= 0);
  const heads = [head("rank"), ...(described ? [head("why", "", true)] : []), head("received", "us"), head("trial"), head("slot"), ...STAMPS.slice(0, -1).map(([, words]) => head(words, "us"))];
  const rows = messages.map((m, i) => {
    const at = stamps(m), incident = incidentOf(condition, m), first = begun.get(incident);
    if (first === undefined) begun.set(incident, i + 1);
    const cells = [micros(at.received), m.trial, count(m.slot), ...STAMPS.slice(0, -1).map(([key]) => micros(at[key]))].map((c) => element("td", {}, String(c)));
    const quiet = (words) => [element("span", { class: "quiet" }, words)];
    const words = incident < 0 ? quiet("part of no incident") : first === undefined ? prose(stalls[incident]) : quiet(`the same stall as ${first}`);
    const why = element("td", { class: "l wrap" }, ...words);
    return element("tr", { id: `worst-${condition.id}-${i + 1}` }, element("td", {}, String(i + 1)), ...(described ? [why] : []), ...cells);
  });
  const names = heads.map((cell) => cell.textContent);
  for (const row of rows) [...row.children].forEach((cell, nth) => { cell.dataset.label = names[nth]; });
  const table = element("table", { class: "cards" }, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  box.replaceChildren(element("p", { class: "note" }, `The ${messages.length === 1 ? "worst message" : `${messages.length} worst messages`} of ${condition.name}. Stamps count from when the message was due (stop-and-wait: from its send call).${messages.some((m) => m.out_range_ns) ? " Stamps of the pong are of another clock, and are left out." : ""}`),
    element("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "The worst messages" }, table));
}

function worstRows(condition) {
  const heads = ["rank", "condition", "trial", "slot", "due_ns", ...STAMPS.map(([key]) => `${key}_after_due_ns`), "incident"];
  const rows = (condition?.worst ?? []).map((m, i) => {
    const at = stamps(m);
    return [i + 1, condition.name, m.trial, m.slot, m.intended_ns ?? m.send_begin_ns, ...STAMPS.map(([key]) => at[key] ?? ""), condition.incidents?.[incidentOf(condition, m)]?.text ?? ""];
  });
  return [heads, ...rows];
}
