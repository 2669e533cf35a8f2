// Is it faster? Time against the dense model, measured, beside what the operations allow.

import { empty, figure, h, svg, table } from "./dom.js";
import { fitted } from "./canvas.js";
import { amount, fixed, percent, range } from "./numbers.js";
import { shown } from "./state.js";

export function cost() {
  return shown().subject.bench.map((bench, place) => figure({
    id: `cost${place || ""}`, title: place ? `Timed again, ${bench.file}` : "Is it faster?", command: bench.command,
    lead: [bench.about, bench.share !== null && `Heads are ${percent(bench.share, 1)} of the operations: without any it could be ${fixed(bench.ceiling, 2)} × as fast at best.`,
      ...bench.notes].filter(Boolean).join(". ").replace(/\.\./g, "."),
    table: () => table(["", "heads", "time / dense", "95 % interval", "ideal", "ms", "parameters", "bytes"],
      bench.rows.map((row) => [row.name, row.heads, fixed(row.ratio && row.ratio.value), range(row.ratio), fixed(row.ideal),
        row.seconds ? fixed(1000 * row.seconds.value, 2) : "", amount(row.parameters), amount(row.memory)]), "Timings"),
  }, bars(bench)));
}

function bars(bench) {
  const box = h("div", { class: "bars" });
  fitted(box, (width) => {
    const longest = Math.max(...bench.rows.map((each) => each.name.length));
    const left = Math.min(7 * longest + 16, width * 0.5), right = 64, row = 34, top = 8;
    const most = Math.max(1.05, ...bench.rows.map((each) => (each.ratio && (each.ratio.high || each.ratio.value)) || 0));
    const x = (value) => left + (value / most) * (width - left - right);
    const high = top + row * bench.rows.length + 24;
    empty(box).append(svg("svg", { width, height: high, role: "img", "aria-label": "Time of each way of running, as a share of the dense model's" },
      [0, 0.25, 0.5, 0.75, 1].map((value) => [svg("line", { x1: x(value), x2: x(value), y1: top, y2: high - 20, class: "rule" }),
        svg("text", { x: x(value), y: high - 5, "text-anchor": "middle" }, value)]),
      bench.rows.filter((each) => each.ratio).map((each, at) => {
        const y = top + at * row + row / 2;
        return [
          svg("text", { x: left - 10, y: y + 4, "text-anchor": "end", class: "label" }, each.name),
          svg("rect", { x: left, width: x(each.ratio.value) - left, y: y - 7, height: 14, class: `bar ${each.kind}` }),
          each.ratio.low !== null && svg("line", { x1: x(each.ratio.low), x2: x(each.ratio.high), y1: y, y2: y, class: "cursor" }),
          each.ideal !== null && svg("path", { d: `M${x(each.ideal)} ${y - 11}V${y + 11}`, class: "ideal" }),
          svg("text", { x: width - right + 8, y: y + 4, class: "label" }, `${fixed(each.ratio.value, 2)} ×`)];
      })));
  });
  const ideal = bench.rows.some((each) => each.ideal !== null) ? "; the upright stroke is the ideal from counted operations" : "";
  return h("div", {}, box, h("p", { class: "rank" }, `Bars are measured time as a share of the dense model's, with 95 % intervals${ideal}.`));
}
