// Every result in one table that can be sorted and downloaded as CSV.

import { empty, figure, h } from "./dom.js";
import { fixed, range, signed } from "./numbers.js";
import { shown } from "./state.js";

const COLUMNS = [
  ["what", "what"], ["method", "method"], ["study", "study"], ["seed", "seed"], ["kept", "heads kept"],
  ["removed", "removed"], ["pattern", "kept per layer"], ["score", "score"], ["low", "low"], ["high", "high"],
  ["difference", "difference"], ["difference_low", "low "], ["difference_high", "high "], ["n", "rows"],
  ["metric", "metric"], ["split", "split"], ["set", "set"], ["rows", "scored on"], ["parameters", "parameters"], ["steps", "steps"], ["command", "command"],
];
const SHOWN = ["what", "method", "study", "seed", "kept", "pattern", "score", "difference", "rows"];
const MOST = 200;

export function results() {
  const { subject, heads } = shown();
  const rows = allRows(subject, heads.length);
  if (!rows.length) return null;
  const by = rows.some((row) => row.difference) ? "difference" : "score"; // scores of other rows are not comparable
  const view = { rows, by, down: subject.higher_is_better, all: rows.length <= MOST };
  const place = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All results" });
  const draw = () => empty(place).append(body(view, draw));
  draw();
  const download = h("button", { type: "button", class: "plain", onclick: () => save(rows, subject.name) }, "Download as CSV");
  const more = rows.length > MOST && h("button", { type: "button", class: "plain", onclick: () => {
    view.all = !view.all;
    more.textContent = view.all ? `Show the first ${MOST}` : `Show all ${rows.length}`;
    draw();
  } }, `Show all ${rows.length}`);
  return figure({ id: "results", title: "All results", tools: [download, more], command: "headcount report DIR -o report.html",
    lead: `${rows.length} scores. Click a column header to sort by it. Differences are from all heads on the same rows; scores on different rows are not comparable.` }, place);
}

function allRows(subject, heads) {
  const row = (what, method, kept, { score, metric, rows, rows_text, command }, more) => ({
    what, method, study: "", kept, removed: 1 - kept / heads, score: score && score.value, low: score && score.low, high: score && score.high,
    metric, n: rows.n, split: rows.split, set: rows.set, rows: rows_text, command, ...more,
  });
  const full = subject.full.map((each) => row("all heads", subject.model, heads, each, { difference: 0 }));
  const others = subject.scores.map((each) => row(each.kind, each.model, heads, each));
  const pruned = subject.pruned.map((model) => row("pruned", model.method, model.kept, model, {
    study: model.study || "", seed: model.seed, pattern: model.pattern, steps: model.steps,
    difference: model.difference && model.difference.value, difference_low: model.difference && model.difference.low,
    difference_high: model.difference && model.difference.high, parameters: model.parameters && model.parameters[1],
  }));
  return [...full, ...others, ...pruned];
}

function body(view, draw) {
  const value = (row) => row[view.by];
  const sorted = [...view.rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    const missing = (each) => each === null || each === undefined || each === "";
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    return (view.down ? -1 : 1) * (typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b);
  });
  const head = SHOWN.map((key) => {
    const name = COLUMNS.find(([each]) => each === key)[1];
    const current = key === view.by;
    return h("th", { scope: "col", "aria-sort": current ? (view.down ? "descending" : "ascending") : "none" },
      h("button", { type: "button", class: "sort", onclick: () => {
        [view.by, view.down] = [key, current ? !view.down : key !== "method" && key !== "what"];
        draw();
      } }, name, current ? (view.down ? " ↓" : " ↑") : ""));
  });
  const rows = (view.all ? sorted : sorted.slice(0, MOST)).map((row) => h("tr", {},
    h("td", {}, row.what), worded(row.method), worded(row.study), h("td", { class: "number" }, row.seed ?? ""),
    h("td", { class: "number" }, `${row.kept} of ${shown().heads.length}`), worded(row.pattern || ""),
    h("td", { class: "number" }, fixed(row.score, 4), h("small", {}, ` ${range(row, 3)}`)),
    h("td", { class: "number" }, row.difference === undefined || row.difference === null ? "" : row.what === "all heads" ? "0" : signed(row.difference),
      h("small", {}, ` ${range({ low: row.difference_low, high: row.difference_high }, 3, true)}`)),
    worded(row.rows || "")));
  return h("table", { class: "results" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
}

function worded(text) {
  return h("td", { class: text.length > 40 ? "long" : null }, text);
}

export function csv(rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    let text = String(value);
    if (typeof value === "string" && /^[=+@\t\r-]/.test(text)) text = `'${text}`; // no formula for a spreadsheet
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const names = COLUMNS.map(([key]) => key);
  return [names.join(","), ...rows.map((row) => names.map((key) => cell(row[key])).join(","))].join("\r\n") + "\r\n";
}

function save(rows, name) {
  const file = URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv" }));
  const link = h("a", { href: file, download: `${name.replace(/[^\w.-]+/g, "-")}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(file), 1000);
}
