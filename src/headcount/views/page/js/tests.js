// Paired tests over seeds, with Holm's correction; and what a search tried.

import { figure, h, table } from "./dom.js";
import { brief, fixed, pvalue, range, signed } from "./numbers.js";
import { shown } from "./state.js";

const AGAINST = [["against_random", "random heads"], ["against_full", "all heads"]];
const SIGNS = { better: "▲", worse: "▼", alike: "≈" };

export function tests() {
  const rows = shown().subject.studies.flatMap(rowsOf);
  if (!rows.length) return null;
  const groups = Map.groupBy ? Map.groupBy(rows, groupOf) : grouped(rows);
  const many = Math.max(...rows.map((row) => row.test.comparisons || 0));
  return figure({
    id: "tests", title: "Are the differences significant?",
    lead: "Mean difference from random heads, or from all heads, paired by seed: ▲ better, ▼ worse, ≈ no measurable difference. " +
      `Tests at the 5 % level, corrected for all comparisons of a study (Holm${many > 1 ? `, up to ${many}` : ""}).${tooFew(rows)}`,
    table: () => details(rows), command: rows[0].study.command,
  }, [...groups.values()].map(small));
}

// A large difference that is not significant needs a reason: mostly there are few seeds.
function tooFew(rows) {
  const seeds = Math.max(...rows.map((row) => row.test.seeds || 0));
  if (!seeds || rows.some((row) => verdictOf(row.test) !== "alike")) return "";
  const needed = Math.min(...rows.map((row) => row.test.seeds_needed || Infinity));
  return ` With ${seeds} ${seeds === 1 ? "seed" : "seeds"} no difference is significant here${needed < Infinity ? `; the largest one would take ${needed}` : ""}.`;
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
    .filter(([key]) => point[key] && point[key].difference.value !== null)
    .map(([key, against]) => ({ study, method: series.name, point, against, test: point[key],
      at: study.over ? `${study.over} ${point.swept}` : `${brief(point.kept)} of ${shown().heads.length} kept` }))));
}

// A row for each method, a column for each number of heads.
function small(rows) {
  const columns = [...new Set(rows.map((row) => row.at))], methods = [...new Set(rows.map((row) => row.method))];
  const { study, against } = rows[0];
  const cell = (method, at) => {
    const row = rows.find((each) => each.method === method && each.at === at);
    if (!row) return h("td", {});
    const { test } = row, verdict = verdictOf(test);
    return h("td", { class: verdict === "alike" ? "number soft" : "number", title: statistics(test) },
      `${signed(test.difference.value)} ${SIGNS[verdict]}`);
  };
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${study.name}, against ${against}` },
    h("table", { class: "small" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, `${study.name}, against ${against}`), columns.map((at) => h("th", { scope: "col", class: "number" }, at)))),
      h("tbody", {}, methods.map((method) => h("tr", {}, h("th", { scope: "row" }, method), columns.map((at) => cell(method, at)))))));
}

function verdictOf(test) {
  if (test.verdict in SIGNS) return test.verdict;
  const { low, high } = test.difference;
  return low === null ? "alike" : low > 0 ? "better" : high < 0 ? "worse" : "alike";
}

function statistics({ difference, p, p_corrected }) {
  return `${range(difference, 3, true)}, p = ${pvalue(p_corrected ?? p)}${p_corrected === null ? "" : " (Holm)"}`;
}

function details(rows) {
  const cells = rows.map(({ study, method, point, against, test }) => [study.name, method, point.kept, against, signed(test.difference.value),
    range(test.difference, 3, true), pvalue(test.p), pvalue(test.p_corrected), test.seeds, verdictOf(test) === "alike"
      ? `no measurable difference${test.seeds_needed ? `; would take ${test.seeds_needed} seeds` : ""}` : verdictOf(test)]);
  return table(["study", "method", "heads kept", "against", "difference", "95 % interval", "p", "p, Holm", "pairs", "verdict"], cells, "Paired tests");
}

export function triedSizes() {
  const { tried, bound, random, command } = shown().subject.headline;
  if (!tried.length) return null;
  const rows = tried.map((each) => [each.method, each.kept, each.rows, each.seeds.join(", "),
    each.difference ? `${signed(each.difference.value)} ${range(each.difference, 3, true)}` : "–",
    each.probability === null ? "–" : fixed(each.probability, 2), each.accepted === null ? "" : each.accepted ? "accepted" : "rejected"]);
  const judged = tried.some((each) => each.accepted !== null);
  return figure({
    id: "tried", title: "What the search tried", command,
    lead: `${rows.length} number${rows.length > 1 ? "s" : ""} of heads, tested on the selection set over all seeds.${judged ? ` The probability is that the loss is within the bound${bound ? ` of ${bound}` : ""}.` : ""}${atRandom(random)}`,
  }, table(["method", "heads kept", "rows", "seeds", "difference from all heads", "probability", ""], rows, "What the search tried"));
}

function atRandom(random) {
  if (!random) return "";
  const { mean, worst, best, count } = random;
  const ends = count > 1 ? `, the mean of ${count} draws (${fixed(worst)} to ${fixed(best)})` : "";
  return ` On the held-out set, as many heads at random score ${fixed(mean)}${ends}.`;
}
