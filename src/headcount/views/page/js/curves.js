// Scores against the heads kept, for all methods of a study; methods compared at one number of
// heads; the effect of an option of trained gates.

import { empty, figure, h, select, table } from "./dom.js";
import { chart } from "./chart.js";
import { about, comparison, valueName } from "./dots.js";
import { brief, fixed, range, signed } from "./numbers.js";
import { allowedChange, shown } from "./state.js";
import { tests, triedSizes } from "./tests.js";

const ALL = "all-heads";

export function curves() {
  const { subject } = shown();
  const several = (study) => study.series.some((each) => each.points.length > 1);
  const parts = [
    chosen(subject.studies.filter((each) => !each.over && several(each)), curve),
    ...subject.studies.filter((each) => !each.over && !several(each)).map(comparison),
    ...subject.studies.filter((each) => each.over).map(sweep),
  ];
  return [...parts, tests(), triedSizes()].filter(Boolean);
}

function chosen(studies, draw) {
  if (!studies.length) return null;
  const spot = h("div", {});
  const names = studies.map((each, at) => [at, `${each.name}${each.repair ? ` (${each.repair})` : ""}`]);
  const show = (at) => {
    const tools = studies.length > 1 ? select("Study", names, String(at), (value) => show(Number(value))) : null;
    empty(spot).append(draw(studies[at], tools));
  };
  show(0);
  return spot;
}

function isRandom(series) {
  return series.name.startsWith("random");
}

function curve(study, tools) {
  const lines = study.series.filter((each) => !each.name.startsWith(ALL));
  const heads = shown().heads.length;
  const x = [...new Set(lines.flatMap((each) => each.points.map((point) => point.kept)))].sort((one, other) => one - other);
  const start = study.full && (study.relative ? { value: 0, low: 0, high: 0 } : study.full);
  if (start && x[x.length - 1] < heads) x.push(heads);
  const line = (series, side) => x.map((at) => {
    const point = series.points.find((each) => each.kept === at);
    if (point) return point.score[side] ?? point.score.value;
    return at === heads && start && series.points.length > 1 ? start[side] ?? start.value : null; // one ratio is a point
  });
  let kind = 0;
  const series = [...lines].sort((one, other) => isRandom(other) - isRandom(one)).map((each) => ({
    name: each.name, values: line(each, "value"), low: line(each, "low"), high: line(each, "high"),
    ...(isRandom(each) ? { colour: "soft", dash: [6, 4] } : { kind: kind++ }),
  }));
  return figure({
    id: "curve", title: "Score against heads kept", tools, lead: `${about(study)}. Bands are 95 % intervals over seeds, or over rows where there is one seed.`,
    command: study.command, table: () => pointTable(study),
  }, chart({ x, series, marks: marksOf(study), xLabel: `heads kept, of ${heads}`, yLabel: valueName(study), falling: true, height: 360 }));
}

// All heads, unpruned and with the same training; the bound, and the selected model.
function marksOf(study) {
  const { subject } = shown();
  const { kept } = subject.headline, { full } = study, level = study.relative ? 0 : full && full.value, marks = [];
  for (const each of study.series.filter((one) => one.name.startsWith(ALL))) {
    const { value } = each.points[0].score;
    marks.push({ y: value, text: `all heads, same training ${fixed(value)}`, colour: "ink" });
  }
  if (full && full.value !== null) marks.push({ y: level, text: study.relative ? "all heads" : `all heads ${fixed(level)}`, colour: "soft" });
  const worst = allowedChange(full);
  if (worst !== null) marks.push({ y: level + worst, text: `bound ${signed(worst)}` });
  if (kept) marks.push({ x: kept, text: "selected" });
  return marks;
}

function pointTable(study) {
  const rows = study.series.flatMap((each) => each.points.map((point) => [
    each.name, brief(point.kept), fixed(point.score.value, 4), range(point.score, 4), point.seeds,
    study.relative ? point.rows : point.difference ? `${signed(point.difference.value)} ${range(point.difference, 3, true)}` : ""]));
  return table(["method", "heads kept", valueName(study), "95 % interval", "models", study.relative ? "rows" : "difference from all heads"],
    rows, "Values of the curve");
}

function sweep(study) {
  const points = [...study.series[0].points].filter((each) => each.swept !== null)
    .sort((one, other) => one.swept - other.swept);
  const x = points.map((each) => each.swept);
  const rows = points.map((point) => [brief(point.swept), point.kept === null ? "" : brief(point.kept),
    fixed(point.score.value, 4), range(point.score, 4), point.seeds]);
  const series = [
    { name: study.metric, values: points.map((each) => each.score.value), low: points.map((each) => each.score.low), high: points.map((each) => each.score.high) },
    { name: "heads kept", values: points.map((each) => each.kept), scale: "right", colour: "soft", dash: [6, 4] },
  ];
  const marks = study.full ? [{ y: study.full.value, text: `all heads ${fixed(study.full.value)}`, colour: "soft" }] : [];
  return figure({
    id: "sweep", title: `Effect of ${study.over} on score and heads kept`, command: study.command,
    lead: `${about(study)}. Gates are trained with each value of ${study.over}, which determines how many heads are kept. Bands are 95 % intervals over seeds.`,
    table: () => table([study.over, "heads kept", study.metric, "95 % interval", "runs"], rows, "Values of the sweep"),
  }, chart({ x, series, marks, xLabel: study.over, yLabel: study.metric, rightLabel: "heads kept", height: 300,
    logarithmic: x[0] > 0 && x[x.length - 1] / x[0] > 20 }));
}
