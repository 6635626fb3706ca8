// Legs: the message that took the median beside the worst ones, each bar split into its parts.

const PARTS = [
  ["send_lateness_ns", "sent late", "late"], ["out_ns", "out", "out"],
  ["turnaround_ns", "turnaround", "turn"], ["back_ns", "back", "back"],
];
/** The same where the legs are not known apart: two clocks, or no row of the pong. */
const WHOLE = [PARTS[0], ["round_trip_ns", "round trip", "out"]];

/** Why each of them was late, in a sentence. */
function causes(messages) {
  const list = element("ol", { class: "causes" });
  messages.forEach(({ cause }, i) => {
    if (cause) list.append(element("li", { class: cause.kind, value: i + 1 }, ...prose(cause.text)));
  });
  return list;
}

/** Bars of a condition: its median message and the ten worst. Without a condition: the median message of each that is shown. */
function legBars(condition) {
  if (!condition) {
    return shown().filter((c) => c.median_message).map((c) => ({ of: c, message: c.median_message, isMedian: true, name: shortName(c) }));
  }
  const median = condition.median_message && { of: condition, message: condition.median_message, isMedian: true, name: "median" };
  const worst = condition.worst.slice(0, 10).map((m, i) => ({ of: condition, message: m, name: `${i + 1}: slot ${count(m.slot)}` }));
  return [median, ...worst].filter(Boolean);
}

function drawLegs(figure, condition) {
  const bars = legBars(condition), messages = bars.map((b) => b.message);
  if (!messages.length) return figure.replaceChildren("No message was answered.");
  const total = (m) => m.from_intended_ns ?? m.round_trip_ns;
  const width = Math.max(640, figure.clientWidth), step = 24, top = 30;
  const height = top + messages.length * step + 14;
  const left = Math.min(260, 22 + 7.2 * Math.max(12, ...bars.map((b) => b.name.length)));
  const plot = { left, right: width - 84 };
  const most = Math.max(...messages.map(total)), unit = unitOf(most);
  const x = linearScale(0, most, plot.left, plot.right);
  const title = condition ? "Legs of the median message and of the worst" : "Legs of the median messages";
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": title });
  for (const tick of linearTicks(most, 7)) {
    picture.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top - 6, y2: height - 12 }));
    picture.append(text(x(tick), top - 13, `${+(tick / unit[1]).toFixed(6)}${THIN}${unit[0]}`, { class: "tick", "text-anchor": "middle" }));
  }
  const parts = messages.every((m) => m.out_ns != null) ? PARTS : WHOLE;
  bars.forEach(({ of, message, isMedian, name }, i) => {
    const y = top + i * step + (isMedian ? 0 : 6);
    picture.append(text(plot.left - 10, y + 12, name.slice(0, 36), { class: isMedian && condition ? "row strong" : "row", "text-anchor": "end" }));
    let from = 0;
    for (const [key, words, kind] of parts) {
      const ns = message[key];
      if (!(ns > 0)) continue;
      const bar = svg("rect", { class: `bar ${kind}`, x: x(from), y, width: Math.max(0.6, x(from + ns) - x(from)), height: 15 });
      const lines = [
        `${isMedian ? "Median message, slot " : "Slot "}${count(message.slot)}, trial ${message.trial}`,
        `${words}: ${time(ns)} of ${time(total(message))}`,
        `exactly ${count(ns)}${THIN}ns`,
      ];
      const data = { condition: of.id, slot: message.slot, trial: message.trial, part: key, valueNs: ns };
      picture.append(readable(bar, lines, data));
      from += ns;
    }
    picture.append(text(x(from) + 7, y + 12, time(total(message)), { class: "value" }));
  });
  figure.replaceChildren(picture, ...(condition ? [causes(condition.worst.slice(0, 10))] : []));
  byKeyboard(picture);
}
