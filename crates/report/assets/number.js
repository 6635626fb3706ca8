// Numbers as people read them.

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

/** A step of 1, 2 or 5 times a power of ten, about `most` of which make `span`. */
function niceStep(span, most) {
  const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough * 0.9999);
}
