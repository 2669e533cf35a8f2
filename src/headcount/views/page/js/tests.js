// Is that more than chance? Differences seed by seed, with Holm's correction; and what a search tried.

import { figure, h, table } from "./dom.js";
import { fixed, percent, pvalue, range, signed } from "./numbers.js";
import { shown } from "./state.js";

const AGAINST = [["random", "random cuts"], ["all", "all heads"]];
const SIGNS = { better: "▲", worse: "▼", alike: "≈" };

export function tests() {
  const rows = shown().subject.studies.flatMap(rowsOf);
  if (!rows.length) return null;
  const groups = Map.groupBy ? Map.groupBy(rows, groupOf) : grouped(rows);
  const many = Math.max(...rows.map((row) => row.test.comparisons || 0));
  return figure({
    id: "tests", title: "Is that more than chance?",
    lead: "Mean difference from random cuts, or from all heads, of the same seeds: ▲ better, ▼ worse, ≈ not told apart. " +
      `Each is a paired test at 5 %, corrected for all comparisons of its study (Holm${many > 1 ? `, up to ${many}` : ""}).${tooFew(rows)}`,
    table: () => details(rows), command: rows[0].study.command,
  }, [...groups.values()].map(small));
}

// A large difference that is not told apart wants a reason: mostly there are few seeds.
function tooFew(rows) {
  const seeds = Math.max(...rows.map((row) => row.test.seeds || 0));
  if (!seeds || rows.some((row) => verdictOf(row.test) !== "alike")) return "";
  const needed = Math.min(...rows.map((row) => row.test.needed || Infinity));
  return ` With ${seeds} seeds nothing is told apart here${needed < Infinity ? `; the largest difference would want ${needed}` : ""}.`;
}

function groupOf(row) {
  return `${row.study.name}|${row.against}`;
}

function grouped(rows) {
  const made = new Map();
  for (const row of rows) made.set(groupOf(row), [...(made.get(groupOf(row)) || []), row]);
  return made;
}

function rowsOf(study) {
  return study.series.flatMap((series) => series.points.flatMap((point) => AGAINST
    .filter(([key]) => point[key] && point[key].value !== null)
    .map(([key, against]) => ({ study, method: series.name, point, against, test: point[key],
      at: study.over ? `${study.over} ${point.value_of}` : `${percent(point.removed, 0)} gone` }))));
}

// A row for each method, a column for each share of heads that went.
function small(rows) {
  const columns = [...new Set(rows.map((row) => row.at))], methods = [...new Set(rows.map((row) => row.method))];
  const { study, against } = rows[0];
  const cell = (method, at) => {
    const row = rows.find((each) => each.method === method && each.at === at);
    if (!row) return h("td", {});
    const { test } = row, verdict = verdictOf(test);
    return h("td", { class: verdict === "alike" ? "number soft" : "number", title: told(test) },
      `${signed(test.value)} ${SIGNS[verdict]}`);
  };
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${study.name}, against ${against}` },
    h("table", { class: "small" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, `${study.name}, against ${against}`), columns.map((at) => h("th", { scope: "col", class: "number" }, at)))),
      h("tbody", {}, methods.map((method) => h("tr", {}, h("th", { scope: "row" }, method), columns.map((at) => cell(method, at)))))));
}

function verdictOf(test) {
  if (test.verdict in SIGNS) return test.verdict;
  return test.low === null ? "alike" : test.low > 0 ? "better" : test.high < 0 ? "worse" : "alike";
}

function told(test) {
  const p = test.corrected ?? test.p;
  return `${range(test, 3, true)}, p = ${pvalue(p)}${test.corrected === null ? "" : " (Holm)"}`;
}

function details(rows) {
  const cells = rows.map(({ study, method, point, against, test }) => [study.name, method, point.kept, against, signed(test.value),
    range(test, 3, true), pvalue(test.p), pvalue(test.corrected), test.seeds, verdictOf(test) === "alike"
      ? `not told apart${test.needed ? `; ${test.needed} seeds would` : ""}` : verdictOf(test)]);
  return table(["study", "method", "heads kept", "against", "difference", "95 % interval", "p", "p, Holm", "pairs", "verdict"], cells, "Paired tests");
}

export function tried() {
  const { answer } = shown().subject;
  if (!(answer.tried || []).length) return null;
  const rows = answer.tried.map((each) => [each.method, each.kept, each.rows, each.seeds.join(", "),
    each.difference ? `${signed(each.difference.value)} ${range(each.difference, 3, true)}` : "–",
    each.chance === null ? "–" : fixed(each.chance, 2), each.accepted ? "accepted" : "refused"]);
  return figure({
    id: "tried", title: "What the search tried", command: answer.command,
    lead: `${rows.length} numbers of heads, each judged on the selection set over all its seeds, not on the held-out set: is the loss within the bound${answer.asked ? ` of ${answer.asked}` : ""}, and how likely?${atRandom(answer.random)}`,
  }, table(["method", "heads kept", "rows", "seeds", "difference from all heads", "chance", ""], rows, "What the search tried"));
}

function atRandom(drawn) {
  if (!drawn) return "";
  const ends = drawn.draws > 1 ? ` in the mean of ${drawn.draws} (${fixed(drawn.worst)} to ${fixed(drawn.best)})` : "";
  return ` On the held-out set, as many heads at random score ${fixed(drawn.mean)}${ends}.`;
}
