// Scores against the share of heads removed, for all methods of a study; and paired tests.

import { empty, figure, h, select, table } from "./dom.js";
import { chart } from "./chart.js";
import { fixed, percent, pvalue, range, share, signed } from "./numbers.js";
import { shown } from "./state.js";

export function curves() {
  const { subject } = shown();
  const drawn = subject.studies.filter((study) => study.series.some((each) => each.points.length > 1));
  const parts = [];
  if (drawn.length) {
    const spot = h("div", {});
    const show = (name) => {
      const study = drawn.find((each) => each.name === name) || drawn[0];
      empty(spot).append(curve(study, drawn, show));
    };
    show(drawn[0].name);
    parts.push(spot);
  }
  const tests = testFigure(subject);
  if (tests) parts.push(tests);
  return parts;
}

function curve(study, all, show) {
  const { subject } = shown();
  const sweep = Boolean(study.over);
  const across = (point) => (sweep ? point.value_of : point.removed);
  const x = [...new Set(study.series.flatMap((each) => each.points.map(across)))]
    .filter((each) => each !== null).sort((one, other) => one - other);
  if (!sweep && study.full && x[0] > 0) x.unshift(0);
  const line = (series, side) => x.map((at) => {
    const point = series.points.find((each) => across(each) === at);
    if (point) return point[side] ?? point.value ?? null;
    return at === 0 && !sweep && study.full ? study.full[side] ?? study.full.value : null;
  });
  const order = [...study.series].sort((one, other) => (one.name.startsWith("random") ? -1 : 0) - (other.name.startsWith("random") ? -1 : 0));
  const series = order.map((each, place) => ({
    name: each.name, values: line(each, "value"), low: line(each, "low"), high: line(each, "high"),
    ...(each.name.startsWith("random") ? { colour: "soft", dash: [6, 4] } : { kind: place - (order[0].name.startsWith("random") ? 1 : 0) }),
  }));
  const marks = [];
  const full = study.full || subject.full;
  if (full && full.value !== null) marks.push({ y: full.value, text: `all heads ${fixed(full.value)}`, colour: "soft" });
  const { answer } = subject;
  if (!sweep && full && answer.bound) marks.push({ y: full.value - Math.abs(answer.bound), text: `bound ${signed(-Math.abs(answer.bound))}` });
  if (!sweep && answer.kept) marks.push({ x: 1 - answer.kept / shown().heads.length, text: "the answer" });
  const tools = all.length > 1 ? select("Study", all.map((each) => [each.name, `${each.name}${each.repair ? ` (${each.repair})` : ""}`]), study.name, show) : null;
  const over = sweep ? study.over : "share of heads removed";
  return figure({
    id: "curve", title: sweep ? `What ${study.over} does to the score` : "How far it can go", tools,
    lead: `${study.metric} on ${study.split}${study.n ? `, ${study.n.toLocaleString("en")} rows` : ""}${study.repair ? `, ${study.repair}` : ""}. Bands are 95 % intervals over seeds, or over rows where there is one cut.`,
    command: study.command, table: () => pointTable(study),
  }, chart({ x, series, marks, xLabel: over, yLabel: study.metric, xValues: sweep ? undefined : share, height: 360 }));
}

function pointTable(study) {
  const rows = study.series.flatMap((each) => each.points.map((point) => [
    each.name, point.kept, percent(point.removed, 1), fixed(point.value, 4), range(point, 4), point.seeds,
    point.difference ? `${signed(point.difference.value)} ${range(point.difference, 3, true)}` : ""]));
  return table(["method", "heads kept", "removed", study.metric, "95 % interval", "cuts", "from all heads"], rows, "The curve's numbers");
}

function testFigure(subject) {
  const rows = [];
  for (const study of subject.studies) {
    for (const series of study.series) {
      for (const point of series.points) {
        for (const [name, test] of [["random cuts", point.random], ["all heads, trained alike", point.all]]) {
          if (!test || test.value === null) continue;
          rows.push([study.name, series.name, point.kept, name, signed(test.value), range(test, 3, true), pvalue(test.p), test.seeds,
            test.low === null ? "not told apart" : test.low > 0 ? "above" : test.high < 0 ? "below" : "not told apart"]);
        }
      }
    }
  }
  const tried = (subject.answer.tried || []).map((each) => ["search", each.method, each.kept, "the bound",
    each.difference ? signed(each.difference.value) : "–", range(each.difference, 3, true), pvalue(each.chance), each.seed ?? "", each.accepted ? "accepted" : "refused"]);
  if (!rows.length && !tried.length) return null;
  const columns = ["study", "method", "heads kept", "against", "difference", "95 % interval", "p", "pairs", ""];
  return figure({
    id: "tests", title: "Is that more than chance?",
    lead: "Differences seed by seed with their paired tests; what is not told apart from random cuts says so.",
  }, table(columns, [...tried, ...rows], "Paired tests"));
}
