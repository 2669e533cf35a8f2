// Colours that every eye can order: viridis for amounts, Okabe and Ito's for kinds.

const VIRIDIS = [
  [68, 1, 84], [72, 26, 108], [71, 47, 125], [65, 68, 135], [57, 86, 140], [49, 104, 142],
  [42, 120, 142], [35, 136, 142], [31, 152, 139], [34, 168, 132], [53, 183, 121], [84, 197, 104],
  [122, 209, 81], [165, 219, 54], [210, 226, 27], [253, 231, 37],
];
const KINDS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6a53"];
const KINDS_DARK = ["#56b4e9", "#f08a4b", "#3ecf9d", "#e29bc4", "#f0c04b", "#9ad4f5", "#b9a88d"];

export function amountColour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const low = Math.floor(at), rest = at - low;
  const one = VIRIDIS[low], other = VIRIDIS[Math.min(low + 1, VIRIDIS.length - 1)];
  return one.map((each, place) => Math.round(each + rest * (other[place] - each)));
}

export function css(rgb) {
  return `rgb(${rgb[0]},${rgb[1]},${rgb[2]})`;
}

// Blue below zero, orange above, hardly seen at it: for what has a sign.
export function signedColour(share) {
  const dark = isDark();
  const strong = share < 0 ? (dark ? [86, 180, 233] : [33, 102, 172]) : dark ? [240, 138, 75] : [179, 88, 6];
  const size = Math.min(Math.abs(share), 1), calm = dark ? 38 : 247;
  return strong.map((each) => Math.round(calm + size * (each - calm)));
}

const darkness = window.matchMedia("(prefers-color-scheme: dark)");

export function isDark() {
  return darkness.matches;
}

export function kindColour(place) {
  const kinds = isDark() ? KINDS_DARK : KINDS;
  return kinds[place % kinds.length];
}

const waiting = [];

export function onTheme(draw) {
  waiting.push(draw);
}

// Figures of a subject that is no longer shown need not be drawn again.
export function forgetThemes() {
  waiting.length = 0;
}

darkness.addEventListener("change", () => waiting.forEach((draw) => draw()));

export function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
