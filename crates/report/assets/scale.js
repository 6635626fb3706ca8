// Numbers as people read them, and scales from nanoseconds to pixels.

const THIN = "\u202f";
const UNITS = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]];

function count(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function threeDigits(value) {
  if (value === 0) return "0";
  const sign = value < 0 ? "-" : "";
  const size = Math.abs(value);
  let exponent = Math.floor(Math.log10(size));
  let scaled = Math.round(size / 10 ** (exponent - 2));
  if (scaled >= 1000) { scaled /= 10; exponent += 1; }
  if (exponent >= 2) return sign + count(Math.round(scaled * 10 ** (exponent - 2)));
  if (Number.isInteger(size) && size < 100) return sign + size;
  return sign + (scaled * 10 ** (exponent - 2)).toFixed(2 - exponent);
}

function unitOf(ns) {
  const size = Math.abs(ns);
  return UNITS[size < 1e3 ? 0 : size < 1e6 ? 1 : size < 1e9 ? 2 : 3];
}

function time(ns, unit = unitOf(ns)) {
  return threeDigits(ns / unit[1]) + THIN + unit[0];
}

/** What slots later than every value are: "lost", "not sent", or "lost or not sent". */
function beyondWords(beyond) {
  return beyond.replaceAll("_", " ");
}

/** p99.9 for 0.999. */
function label(q) {
  return "p" + String(+(q * 100).toFixed(13));
}

/** "1 in 1,000" for 0.999; empty where that is no whole number. */
function oneIn(q) {
  const n = 1 / (1 - q);
  return Math.abs(n - Math.round(n)) < 1e-4 * n ? "1 in " + count(Math.round(n)) : "";
}

function logScale(low, high, from, to) {
  const [a, b] = [Math.log(low), Math.log(high)];
  return (v) => from + (to - from) * (b !== a ? (Math.log(Math.max(v, 1e-9)) - a) / (b - a) : 0.5);
}

function linearScale(low, high, from, to) {
  return (v) => from + (to - from) * (v - low) / (high - low || 1);
}

/** 1-2-5 in every decade; only the ones where there would be more than `most`. */
function logTicks(low, high, most) {
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      for (const s of steps) ticks.push(s * 10 ** e);
    }
    const inside = ticks.filter((t) => t >= low * 0.999 && t <= high * 1.001);
    if (inside.length <= most || steps.length === 1) return inside;
  }
}

function linearTicks(high, most) {
  const rough = high / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough);
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => i * step);
}

/** The domain, widened to the next 1-2-5 step on both sides. */
function niceLog(low, high) {
  const down = [5, 2, 1], up = [1, 2, 5, 10];
  const floor = 10 ** Math.floor(Math.log10(low)), base = 10 ** Math.floor(Math.log10(high));
  return [floor * down.find((s) => s * floor <= low * 1.0001), base * up.find((s) => s * base >= high * 0.9999)];
}
