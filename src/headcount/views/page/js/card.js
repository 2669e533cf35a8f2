// The card of a head: everything that was measured of it, beside all the other heads.

import { add, empty, folded, h, svg } from "./dom.js";
import { brief, fixed, range } from "./numbers.js";
import { square, unpack } from "./packed.js";
import { errorOf, extent, nameOf, on, pick, shortName, shown } from "./state.js";

const GROUPS = [
  ["Behaviour", ["previous", "next", "same", "first", "separator", "duplicate", "induction",
    "entropy", "entropy_share", "reach", "entropy in a sentence", "distance in a sentence", "entropy in an image", "distance in an image"]],
  ["Importance", ["importance", "replaceable", "cost_alone", "cost_alone_repaired", "score_alone", "score_alone_repaired", "kept by"]],
  ["Cost", ["milliseconds", "kilobytes"]],
  ["Training", ["drift", "weight change", "gate"]],
];
const MANY = 300;

export function headCard() {
  const box = h("aside", { id: "card", tabindex: "-1", "aria-label": "Card of the selected head" });
  on("pick", () => draw(box));
  on("removed", () => { if (shown().picked !== null) box.querySelector(".lead").textContent = roleAndState(); });
  draw(box);
  return box;
}

function draw(box) {
  const { picked } = shown();
  empty(box);
  if (picked === null) {
    add(box, h("h3", {}, "Head card"), h("p", { class: "lead" },
      "Select a head in any figure, with the pointer or the arrow keys, to see everything that was measured of it."));
    return;
  }
  add(box,
    h("p", { class: "kicker" }, "Head card"),
    h("h3", {}, nameOf(picked)[0].toUpperCase() + nameOf(picked).slice(1)),
    h("p", { class: "lead" }, roleAndState()),
    grouped(picked),
    neighbours(picked),
    traces(picked),
    examples(picked));
}

function roleAndState() {
  const { subject, removed, picked } = shown();
  const role = subject.roles && subject.roles.names[picked];
  return `${role ? `Role: ${role}. ` : ""}${removed[picked] ? "Removed" : "Kept"} at the slider's position.`;
}

function grouped(place) {
  const { quantities } = shown().subject;
  const left = new Set(quantities.filter((each) => !each.key.startsWith("nearest") && !each.kinds));
  const parts = [];
  for (const [title, names] of [...GROUPS, ["Other", [""]]]) {
    const own = quantities.filter((each) => left.has(each) && each.values[place] !== null &&
      names.some((name) => each.key === name || (each.key.startsWith(name) && !names.includes(each.key))));
    own.forEach((each) => left.delete(each));
    if (own.length) parts.push(h("section", {}, h("h4", {}, title), own.map((each) => strip(each, place))));
  }
  return parts;
}

// One number on a line from the smallest to the largest of all heads, with its interval.
function strip(quantity, place) {
  const { heads } = shown();
  const [low, high] = extent(quantity);
  const x = (value) => (high > low ? 2 + (96 * (Math.min(Math.max(value, low), high) - low)) / (high - low) : 50);
  const error = errorOf(quantity, place);
  const step = Math.max(1, Math.ceil(heads.length / MANY));
  let d = "";
  quantity.values.forEach((value, at) => {
    if (value !== null && at % step === 0) d += `M${x(value).toFixed(2)} 4V12`;
  });
  const value = quantity.values[place];
  const known = quantity.values.filter((each) => each !== null);
  const rank = known.filter((each) => each > value).length + 1;
  return h("div", { class: "strip", title: quantity.what },
    h("div", { class: "name" }, quantity.label, h("b", {}, `${brief(value)} ${quantity.unit}`.trim())),
    svg("svg", { viewBox: "0 0 100 16", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("line", { x1: 2, x2: 98, y1: 8, y2: 8, class: "rule" }),
      svg("path", { d, class: "others" }),
      error && svg("rect", { x: x(error.low), width: Math.max(0.4, x(error.high) - x(error.low)), y: 6, height: 4, class: "interval" }),
      svg("rect", { x: x(value) - 0.9, width: 1.8, y: 1, height: 14, class: "own" })),
    h("div", { class: "rank" }, error ? `${range(error, Math.abs(value) < 0.1 ? 4 : 3)} · ` : "", `rank ${rank} of ${known.length} heads`));
}

function neighbours(place) {
  const { subject, heads } = shown();
  const own = subject.matrices.filter((each) => each.stack === heads[place].stack);
  if (!own.length) return null;
  const first = own.filter((each) => each.model === own[0].model && each.inputs === own[0].inputs);
  const more = own.filter((each) => !first.includes(each));
  return h("section", {}, h("h4", {}, "Nearest heads"),
    h("p", { class: "rank" }, `${own[0].model}, ${own[0].inputs}`),
    nearList(first, place, (matrix) => matrix.distance),
    more.length > 0 && folded("With other inputs and checkpoints", () => nearList(more, place, (matrix) => `${matrix.distance}, ${matrix.model}, ${matrix.inputs}`)));
}

function nearList(matrices, place, name) {
  const { subject } = shown();
  const list = h("dl", { class: "near" });
  for (const matrix of matrices) {
    const cell = h("dd", {}, "…");
    list.append(h("dt", {}, name(matrix)), cell);
    square(matrix).then((values) => {
      const n = matrix.heads, start = subject.layout.find((each) => each.name === matrix.stack).start;
      const row = [...values.subarray((place - start) * n, (place - start + 1) * n)]
        .map((value, at) => [value, at + start]).filter(([, at]) => at !== place)
        .sort((one, other) => one[0] - other[0]).slice(0, 3);
      add(empty(cell), row.map(([value, at]) => h("button", { type: "button", class: "head",
        onclick: () => pick(at, "card") }, `${shortName(at)} `, h("small", {}, fixed(value, 3)))));
    });
  }
  return list;
}

function traces(place) {
  const { subject, heads } = shown();
  return subject.gates.slice(0, 3).map((trace) => {
    const spot = h("div", { class: "spark" });
    unpack(trace.values, "f4").then((values) => {
      const own = trace.steps.map((_, at) => values[at * heads.length + place]);
      const [low, high] = [Math.min(...own, 0), Math.max(...own, 0)];
      const x = (at) => (100 * at) / Math.max(own.length - 1, 1);
      const y = (value) => 30 - (28 * (value - low)) / (high - low || 1);
      const d = own.map((value, at) => `${at ? "L" : "M"}${x(at).toFixed(2)} ${y(value).toFixed(2)}`).join("");
      spot.append(svg("svg", { viewBox: "0 0 100 32", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("line", { x1: 0, x2: 100, y1: y(0), y2: y(0), class: "rule" }), svg("path", { d, class: "line" })),
        h("p", { class: "rank" }, `from ${brief(own[0])} to ${brief(own[own.length - 1])} over ${trace.steps[trace.steps.length - 1]} steps`));
    });
    return h("section", {}, h("h4", {}, `Gate over training, ${trace.method} in ${trace.name}`), spot);
  });
}

function examples(place) {
  const { subject } = shown();
  const own = subject.roles && subject.roles.examples[place];
  if (!own || !own.length) return null;
  const strongest = [...own].sort((one, other) => other.decile - one.decile);
  return h("section", { class: "examples" }, h("h4", {}, "What it attends to"),
    h("p", { class: "rank" }, "Attention from the framed token; decile 10 is a row where the head is strongest, decile 1 where it is weakest."),
    strongest.slice(0, 3).map(example),
    strongest.length > 3 && folded("More examples", () => h("div", {}, strongest.slice(3).map(example))));
}

function example(each) {
  const decile = each.decile === null ? null : `decile ${each.decile}`;
  if (!each.pruned) return sentence(each, each.weights, decile);
  return h("div", { class: "pair" }, sentence(each, each.weights, [decile, "before"].filter(Boolean).join(", ")),
    each.after === null ? h("p", { class: "tokens" }, h("small", {}, "removed in the pruned model"))
      : sentence(each, each.after, "after pruning"));
}

function sentence(each, pairs, name) {
  const weights = {};
  for (const [at, weight] of pairs) weights[at] = weight;
  const most = Math.max(...Object.values(weights), 1e-9);
  const other = each.keys && each.query !== null ? ` from “${each.tokens[each.query]}”` : "";
  return h("p", { class: "tokens" },
    name && h("small", {}, `${name}${other} `),
    (each.keys || each.tokens).map((token, at) => h("span", {
      class: at === each.query && !each.keys ? "query" : null,
      title: weights[at] ? `${fixed(weights[at], 3)}` : null,
      style: weights[at] ? { backgroundColor: `color-mix(in srgb, var(--glow) ${Math.round((85 * weights[at]) / most)}%, transparent)` } : {},
    }, token)));
}
