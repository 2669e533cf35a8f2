// Is it faster? The measured speedup over the unpruned model, beside what the FLOPs allow.

import { empty, figure, h, svg, table } from "./dom.js";
import { fitted } from "./canvas.js";
import { amount, fixed, percent, range, ticks } from "./numbers.js";
import { shown } from "./state.js";

export function cost() {
  return shown().subject.bench.map((bench, place) => figure({
    id: `cost${place || ""}`, title: place ? `Timed again, ${bench.file}` : "Is it faster?", command: bench.command,
    lead: [bench.about, bench.share !== null && `Heads are ${percent(bench.share, 1)} of the FLOPs: without any the model could be ${fixed(bench.ceiling, 2)} × as fast at best.`,
      ...bench.notes].filter(Boolean).join(". ").replace(/\.\./g, "."),
    table: () => table(["", "heads", "× as fast", "95 % interval", "at best", "ms", "parameters", "bytes"],
      bench.rows.map((row) => [row.name, row.heads, fixed(row.speedup && row.speedup.value, 2), range(row.speedup, 2), fixed(row.max_speedup, 2),
        row.seconds ? fixed(1000 * row.seconds.value, 2) : "", amount(row.parameters), amount(row.memory)]), "Timings"),
  }, bars(bench)));
}

function bars(bench) {
  const box = h("div", { class: "bars" });
  fitted(box, (width) => {
    const longest = Math.max(...bench.rows.map((each) => each.name.length));
    const left = Math.min(7 * longest + 16, width * 0.5), right = 64, row = 34, top = 8;
    const most = Math.max(1.05, ...bench.rows.map((each) => (each.speedup && Math.max(each.speedup.high || each.speedup.value, each.max_speedup || 0)) || 0));
    const x = (value) => left + (value / most) * (width - left - right);
    const letters = Math.floor((left - 12) / 6.6);
    const high = top + row * bench.rows.length + 24;
    empty(box).append(svg("svg", { width, height: high, role: "img", "aria-label": "Speedup of each way of running over the unpruned model" },
      ticks(0, most, 4).map((value) => [svg("line", { x1: x(value), x2: x(value), y1: top, y2: high - 20, class: "rule" }),
        svg("text", { x: x(value), y: high - 5, "text-anchor": "middle" }, value)]),
      bench.rows.filter((each) => each.speedup).map((each, at) => {
        const y = top + at * row + row / 2;
        return [
          svg("text", { x: left - 10, y: y + 4, "text-anchor": "end", class: "label" },
            each.name.length > letters ? `${each.name.slice(0, letters - 1)}…` : each.name, svg("title", {}, each.name)),
          svg("rect", { x: left, width: x(each.speedup.value) - left, y: y - 7, height: 14, class: `bar ${each.kind}` }),
          each.speedup.low !== null && svg("line", { x1: x(each.speedup.low), x2: x(each.speedup.high), y1: y, y2: y, class: "cursor" }),
          each.max_speedup !== null && svg("path", { d: `M${x(each.max_speedup)} ${y - 11}V${y + 11}`, class: "ideal" }),
          svg("text", { x: width - right + 8, y: y + 4, class: "label" }, `${fixed(each.speedup.value, 2)} ×`)];
      })));
  });
  const ideal = bench.rows.some((each) => each.max_speedup !== null) ? "; the vertical line is the largest speedup that the FLOPs allow" : "";
  return h("div", {}, box, h("p", { class: "rank" }, `Bars: measured speedup over the unpruned model, with 95 % intervals${ideal}.`));
}
