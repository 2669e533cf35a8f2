// Numbers as people read them.

const MINUS = "\u2212";

export function typographic(text) {
  return text.replace(/-/g, MINUS);
}

export function fixed(value, digits = 3) {
  return value === null || value === undefined ? "–" : typographic(value.toFixed(digits));
}

export function signed(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const text = value.toFixed(digits);
  if (Number(text) === 0) return text.replace("-", ""); // nothing has no sign
  return (value > 0 ? "+" : "") + typographic(text);
}

// Three or four telling digits, whatever the size.
export function brief(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return typographic(value.toExponential(2));
  if (size >= 100) return typographic(value.toFixed(0));
  const digits = size >= 10 ? 1 : size >= 1 ? 2 : 4;
  return typographic(value.toFixed(digits)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

export function range(bounds, digits = 3, sign = false) {
  if (!bounds || bounds.low === null || bounds.low === undefined) return "";
  const show = sign ? signed : fixed;
  return `[${show(bounds.low, digits)}, ${show(bounds.high, digits)}]`;
}

export function amount(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, prefix] of [[1e9, " B"], [1e6, " M"], [1e3, " k"]]) {
    if (value >= size * 0.9995) {
      const scaled = value / size;
      return scaled.toFixed(scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0) + prefix;
    }
  }
  return value.toFixed(0);
}

export function percent(share, digits = 0) {
  return share === null || share === undefined ? "–" : `${typographic((100 * share).toFixed(digits))} %`;
}

// A share as an axis writes it: a digit after the point only where it needs one.
export function share(value) {
  return percent(value, Math.abs(value * 100 - Math.round(value * 100)) < 1e-6 ? 0 : 1);
}

export function pvalue(p) {
  if (p === null || p === undefined) return "–";
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}

// The numbers of an axis: about `count` round steps from low to high.
export function ticks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-6; at++) found.push(at * step);
  return found;
}
