// Methods compared at one share of heads: a row each, its score with its interval.

import { empty, figure, h, svg, table } from "./dom.js";
import { fitted } from "./canvas.js";
import { fixed, range, signed, ticks } from "./numbers.js";
import { shown } from "./state.js";

const ROW = 30, TOP = 10, FOOT = 30;

// The points are scores or, where their rows differ, differences from all heads on the same rows.
export function valueName(study) {
  return study.relative ? `${study.metric}, difference from all heads` : study.metric;
}

export function about(study) {
  const what = study.relative ? `${study.metric} minus that of all heads on the same rows` : study.metric;
  return [study.rows ? `${what}: ${study.rows}` : what, study.repair].filter(Boolean).join(", ");
}

export function comparison(study) {
  const rows = study.series.map((each) => ({ ...each.points[0], ...each.points[0].score, name: each.name }))
    .sort((one, other) => (shown().subject.higher_is_better ? 1 : -1) * (other.value - one.value));
  const kept = [...new Set(rows.map((each) => each.kept))];
  const cells = rows.map((row) => [row.name, row.kept, fixed(row.value, 4), range(row, 4), row.seeds,
    row.difference ? `${signed(row.difference.value)} ${range(row.difference, 3, true)}` : ""]);
  const alike = study.repair === "fine-tuned" ? ", all with the same training" : "";
  return figure({
    id: `compare-${study.name}`, title: "Methods compared", command: study.command,
    lead: `${about(study)}, with ${kept.join(" or ")} heads kept${alike}. ` +
      "Bars are 95 % intervals over seeds; the dashed line is the unpruned model.",
    table: () => table(["method", "heads kept", valueName(study), "95 % interval", "runs", "difference from all heads"], cells, "Values of the comparison"),
  }, dots(rows, study));
}

function dots(rows, study) {
  const box = h("div", { class: "dotrows" });
  fitted(box, (width) => {
    const left = Math.min(180, width * 0.36), right = 62;
    const full = study.full && (study.relative ? 0 : study.full.value);
    const values = rows.flatMap((each) => [each.value, each.low ?? each.value, each.high ?? each.value]).concat(full ?? []);
    const [low, high] = [Math.min(...values), Math.max(...values)], space = (high - low) * 0.06 || 0.01;
    const x = (value) => left + ((value - low + space) / (high - low + 2 * space)) * (width - left - right);
    const tall = TOP + ROW * rows.length + FOOT;
    empty(box).append(svg("svg", { width, height: tall, role: "img",
      "aria-label": rows.map((each) => `${each.name} ${fixed(each.value)}`).join(", ") },
    ticks(low, high, Math.max(2, Math.round((width - left) / 120))).map((value) => [
      svg("line", { x1: x(value), x2: x(value), y1: TOP, y2: tall - FOOT + 4, class: "rule" }),
      svg("text", { x: x(value), y: tall - 12, "text-anchor": "middle" }, fixed(value, 2))]),
    full !== null && svg("line", { x1: x(full), x2: x(full), y1: TOP, y2: tall - FOOT + 4, class: "bound" }),
    rows.map((each, at) => {
      const y = TOP + at * ROW + ROW / 2;
      return [
        svg("text", { x: left - 10, y: y + 4, "text-anchor": "end", class: "label" }, each.name.length > 24 ? `${each.name.slice(0, 23)}…` : each.name,
          svg("title", {}, each.name)),
        each.low !== null && each.low !== undefined && svg("line", { x1: x(each.low), x2: x(each.high), y1: y, y2: y, class: "reach" }),
        svg("circle", { cx: x(each.value), cy: y, r: 5, class: each.name.startsWith("random") ? "spot random" : "spot" }),
        svg("text", { x: width - right + 8, y: y + 4, class: "label" }, fixed(each.value))];
    })));
  });
  return box;
}
