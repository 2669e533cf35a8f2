// The page: the answer, the heads, and every other view that the files allow.

import { add, empty, figure, folded, h, renewFolds, select } from "./dom.js";
import { attention } from "./attention.js";
import { gates, transfer } from "./changes.js";
import { forgetThemes } from "./colours.js";
import { cost } from "./cost.js";
import { curves } from "./curves.js";
import { gridTable, headGrid } from "./grid.js";
import { redundancy } from "./matrix.js";
import { passport } from "./passport.js";
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
  ["likeness", "Likeness", () => redundancy()],
  ["looking", "Attention", () => attention()],
  ["change", "Fine-tuning", () => transfer()],
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
      h("p", { class: "answer", id: "answer" }, subject.answer.sentence),
      standing(subject), chooser),
    nav,
    h("main", {}, parts.map(([id, name, own]) => h("section", { id, "aria-label": name }, own))),
    footer());
  const start = first(subject.quantities[0]);
  if (start !== null) pick(start, "start");
}

// The page opens with a passport to read: of the head with most of what the grid is coloured by.
function first(quantity) {
  const values = quantity && !quantity.kinds ? quantity.values : [];
  return values.reduce((best, value, place) => (value !== null && (best === null || value > values[best]) ? place : best), null);
}

function standing(subject) {
  const { answer } = subject;
  const said = [];
  if (answer.asked) said.push(`The bound was ${answer.asked}.`);
  if (answer.parameters) said.push(`${percent(answer.parameters[1] / answer.parameters[0], 1)} of the parameters are left.`);
  if (answer.holds === false) said.push("The bound was not met.");
  if (answer.note) said.push(answer.note);
  return said.length || answer.command
    ? h("p", { class: "standing" }, said.join(" "), answer.command && h("code", {}, ` ${answer.command}`)) : null;
}

function heads() {
  const { subject } = shown();
  const grid = headGrid();
  const slider = replay();
  const points = scatter();
  const stacks = subject.layout.map((stack) => `${stack.name} ${stack.heads.length} layers`).join(", ");
  const commands = [...new Set(subject.quantities.map((each) => each.command).filter(Boolean))].slice(0, 8).join("\n") ||
    `headcount inspect ${subject.model}`;
  window.headcount = { stats, go: slider && slider.go, pick, shown };
  const first = figure({
    id: "grid", title: "The heads, and which can go", tools: grid.choice, command: commands, table: gridTable,
    lead: `${shown().heads.length} heads: ${stacks}. A row is a layer, a column a head; crossed out is gone.`,
  }, h("div", { class: "beside" },
    h("div", {}, grid.box, grid.legend, slider && slider.box),
    slider && slider.figures));
  const renew = later(() => renewFolds(first));
  on("colour", renew);
  on("gone", renew);
  const second = points && figure({
    id: "scatter", title: "Heads against each other", tools: points.tools, table: points.table, command: commands,
    lead: "Dark points are low layers, bright ones high; hollow ones are gone at this point of the slider.",
  }, points.box);
  return [h("div", { class: "withpassport" }, h("div", {}, first, second), passport())];
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
    h("p", {}, `Made by headcount ${version} from the records of its runs. Intervals are 95 %. This file asks nothing of any other machine.`));
}

if (data.subjects.length) show(0);
else page.append(h("p", { class: "answer" }, "Nothing to show: no record, mask, matrix or trace was found."), footer());
