// The worst messages with every stamp, and why they were late.

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

/** The incident to which a message belongs, if the report describes it. */
function incidentOf(condition, message) {
  const due = message.intended_ns ?? message.send_begin_ns;
  return (condition.incidents ?? []).find((i) => i.trial === message.trial && i.begin_ns <= due && due <= i.end_ns);
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
  const described = messages.some((m) => incidentOf(condition, m));
  const heads = [head(""), head("trial"), head("slot"), head("due at", "ns"), ...STAMPS.map(([, words]) => head(words, "us")), ...(described ? [head("incident", "", true)] : [])];
  const rows = messages.map((m, i) => {
    const at = stamps(m), due = m.intended_ns ?? m.send_begin_ns;
    const cells = [i + 1, m.trial, count(m.slot), count(due), ...STAMPS.map(([key]) => micros(at[key]))].map((c) => element("td", {}, String(c)));
    const incident = incidentOf(condition, m);
    const why = element("td", { class: "l wrap" }, ...(incident ? prose(incident.text) : [element("span", { class: "quiet" }, "part of no incident")]));
    return element("tr", { id: `worst-${condition.id}-${i + 1}` }, ...cells, ...(described ? [why] : []));
  });
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows));
  box.replaceChildren(element("p", { class: "note" }, `The ${messages.length === 1 ? "worst message" : `${messages.length} worst messages`} of ${condition.name}. Stamps count from when the message was due (stop-and-wait: from its send call).${messages.some((m) => m.out_range_ns) ? " Stamps of the pong are of another clock, and are left out." : ""}`),
    element("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "The worst messages" }, table));
}

function worstRows(condition) {
  const heads = ["rank", "condition", "trial", "slot", "due_ns", ...STAMPS.map(([key]) => `${key}_after_due_ns`), "incident"];
  const rows = (condition?.worst ?? []).map((m, i) => {
    const at = stamps(m);
    return [i + 1, condition.name, m.trial, m.slot, m.intended_ns ?? m.send_begin_ns, ...STAMPS.map(([key]) => at[key] ?? ""), incidentOf(condition, m)?.text ?? ""];
  });
  return [heads, ...rows];
}
