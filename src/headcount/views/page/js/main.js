// The page: its first sentence, the heads, and every other view that the files allow.
// A view is a function that gives its figures; a new one is a line in SECTIONS.

import { add, empty, figure, folded, h, renewFolds, select } from "./dom.js";
import { attention } from "./attention.js";
import { gates, transfer } from "./changes.js";
import { headCard } from "./card.js";
import { forgetThemes } from "./colours.js";
import { cost } from "./cost.js";
import { curves } from "./curves.js";
import { gridTable, headGrid } from "./grid.js";
import { redundancy } from "./matrix.js";
import { percent } from "./numbers.js";
import { replay } from "./replay.js";
import { results } from "./results.js";
import { scatter } from "./scatter.js";
import { on, open, pick, shown, stats } from "./state.js";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const SECTIONS = [
  ["heads", "Heads", heads],
  ["curves", "Curves", () => curves()],
  ["redundancy", "Redundancy", () => redundancy()],
  ["maps", "Attention", () => attention()],
  ["finetuning", "Fine-tuning", () => transfer()],
  ["training", "Gates", () => gates()],
  ["time", "Cost", () => cost()],
  ["all", "Results", () => [results()]],
];

function show(place) {
  const subject = data.subjects[place];
  forgetThemes();
  open(subject);
  document.title = `${subject.name} · heads`;
  const parts = SECTIONS.map(([id, name, make]) => [id, name, make().filter(Boolean)]).filter(([, , own]) => own.length);
  const nav = h("nav", { "aria-label": "Parts of the page" }, parts.map(([id, name]) => h("a", { href: `#${id}` }, name)));
  const chooser = data.subjects.length > 1 &&
    select("Model and task", data.subjects.map((each, at) => [at, each.name]), String(place), (value) => show(Number(value)));
  add(empty(page),
    h("header", {},
      h("p", { class: "kicker" }, "headcount · ", subject.name),
      h("h1", {}, "How many heads does it need?"),
      ...answer(subject.headline), chooser),
    nav,
    h("main", {}, parts.map(([id, name, own]) => h("section", { id, "aria-label": name }, own))),
    footer());
  const start = first(subject.quantities[0]);
  if (start !== null) pick(start, "start");
}

// The page opens with a head card to read: of the head with the largest value in the grid.
function first(quantity) {
  const values = quantity && !quantity.kinds ? quantity.values : [];
  return values.reduce((best, value, place) => (value !== null && (best === null || value > values[best]) ? place : best), null);
}

// The answer: of a search a line, three figures and the small print; else one sentence.
function answer(headline) {
  const { card, sentence } = headline;
  if (!card) return [h("p", { class: "headline", id: "headline" }, sentence), basis(headline)];
  return [
    h("p", { class: "headline answer", id: "headline" }, card.title),
    h("dl", { class: "tiles" }, card.tiles.map((tile) =>
      h("div", {}, h("dt", {}, tile.label), h("dd", {}, h("b", {}, tile.value), tile.detail)))),
    h("p", { class: "basis" }, `${card.small_print}. `, card.command && h("code", {}, card.command)),
    folded("In full", () => h("div", {}, h("p", { class: "basis", id: "sentence" }, sentence), basis({ ...headline, command: null }))),
  ];
}

// What the first sentence is based on.
function basis({ bound, parameters, within_bound, note, command }) {
  const sentences = [
    bound && `The bound was ${bound}.`,
    parameters && `${percent(parameters[1] / parameters[0], 1)} of the parameters are left.`,
    within_bound === false && "The bound was not met.",
    note,
  ].filter(Boolean);
  return sentences.length || command ? h("p", { class: "basis" }, sentences.join(" "), command && h("code", {}, ` ${command}`)) : null;
}

function heads() {
  const { subject } = shown();
  const grid = headGrid();
  const slider = replay();
  const points = scatter();
  const layers = subject.layout.map((stack) => `${stack.name} ${stack.heads.length} layers`);
  const stacks = layers.length > 1 ? `: ${layers.join(", ")}` : ` in ${subject.layout[0].heads.length} layers`;
  const commands = [...new Set(subject.quantities.map((each) => each.command).filter(Boolean))].slice(0, 8).join("\n") ||
    `headcount inspect ${subject.model}`;
  window.headcount = { stats, go: slider && slider.go, pick, shown };
  const first = figure({
    id: "grid", title: "The heads, and which can be removed", tools: grid.choice, command: commands, table: gridTable,
    lead: `${shown().heads.length} heads${stacks}. Rows are layers, columns are heads; removed heads are crossed out.`,
  }, h("div", { class: "beside" },
    h("div", {}, grid.box, grid.legend, slider && slider.box),
    slider && slider.figures));
  const renew = later(() => renewFolds(first));
  on("colour", renew);
  on("removed", renew);
  const second = points && figure({
    id: "scatter", title: "Two quantities of every head", tools: points.tools, table: points.table, command: commands,
    lead: "A point is a head. Dark points are in lower layers, bright points in higher ones; hollow points are removed at the slider's position.",
  }, points.box);
  return [h("div", { class: "withcard" }, h("div", {}, first, second), headCard())];
}

// Once, a little after the last of several calls.
function later(act) {
  let waiting = null;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(act, 120);
  };
}

function footer() {
  const { skipped, version } = data;
  return h("footer", {},
    skipped.length ? folded(`${skipped.length} file${skipped.length > 1 ? "s were" : " was"} left out`, () =>
      h("ul", {}, skipped.map(([name, why]) => h("li", {}, h("code", {}, name), " ", why)))) : null,
    h("p", {}, `Made by headcount ${version} from the records of its runs. All intervals are 95 % intervals. This file makes no network requests.`));
}

if (data.subjects.length) show(0);
else page.append(h("p", { class: "headline" }, "Nothing to show: no record, mask, matrix or trace was found."), footer());
