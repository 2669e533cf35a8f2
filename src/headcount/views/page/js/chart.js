// Lines with bands, by uPlot, in the page's own colours.

import { h } from "./dom.js";
import { ink, kindColour, onTheme } from "./colours.js";
import { fitted } from "./canvas.js";
import { brief } from "./numbers.js";

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7];

// series: [{ name, values, low, high, dash, colour, scale, points }] over one list of x.
export function chart({ x, series, xLabel, yLabel, height = 320, marks = [], yRange, rightLabel, xValues, logarithmic, falling, label }) {
  const box = h("div", { class: "chart", role: "img", "aria-label": label || `${yLabel} by ${xLabel}` });
  const whole = !logarithmic && !xValues && x.every(Number.isInteger); // no half layers, no half steps
  let plot = null;
  const draw = (width) => {
    if (plot) plot.destroy();
    plot = new uPlot(options(width), data(), box);
  };
  const data = () => [x, ...series.flatMap((each) => each.low ? [each.values, each.low, each.high] : [each.values])];
  const options = (width) => {
    const lines = [{ label: xLabel, value: (_, value) => (value === null ? "" : xValues ? xValues(value) : brief(value)) }];
    const bands = [];
    series.forEach((each, place) => {
      const colour = each.colour ? ink(each.colour) : kindColour(each.kind ?? place);
      const at = lines.length;
      lines.push({
        label: each.name, stroke: colour, width: each.thin ? 1.2 : 2, dash: each.dash, spanGaps: true,
        scale: each.scale || "y", value: (_, value) => (value === null || value === undefined ? "" : brief(value)),
        points: { show: each.points !== false && x.length < 60, size: 6, fill: ink("page"), stroke: colour },
      });
      if (each.low) {
        const edge = { scale: each.scale || "y", stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
        lines.push({ ...edge, label: `${each.name} low`, class: "edge" }, { ...edge, label: `${each.name} high`, class: "edge" });
        bands.push({ series: [at + 2, at + 1], fill: `${colour}${series.length > 4 ? "10" : "2e"}` }); // many bands are faint
      }
    });
    const axis = (more) => ({
      stroke: ink("soft"), font: "11px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18,
      grid: { stroke: ink("rule"), width: 1 }, ticks: { show: false }, ...more,
    });
    const axes = [
      axis({ label: xLabel, size: 34, grid: { show: false }, ...(whole ? { incrs: WHOLE } : {}), values: xValues && ((_, values) => values.map(xValues)) }),
      axis({ label: yLabel, size: 56, values: (_, values) => values.map(brief) }),
    ];
    const scales = { x: { time: false, dir: falling ? -1 : 1, ...(logarithmic ? { distr: 3 } : {}) }, y: { range: yRange } };
    if (rightLabel) {
      axes.push(axis({ label: rightLabel, scale: "right", side: 1, size: 56, grid: { show: false }, values: (_, values) => values.map(brief) }));
      scales.right = {};
    }
    return { width, height: width < 500 ? Math.min(height, 260) : height, series: lines, bands, axes, scales,
      cursor: { points: { size: 7 } }, legend: { live: true, show: series.length > 1 },
      hooks: { draw: [(u) => drawMarks(u, marks)], ready: [tidy] } };
  };
  onTheme(fitted(box, draw));
  return box;
}

// The legend names lines, not the edges of their bands.
function tidy(plot) {
  plot.root.querySelectorAll(".u-series").forEach((row) => {
    const name = row.querySelector(".u-label").textContent;
    if (row.classList.contains("edge") || / (low|high)$/.test(name)) row.remove();
  });
}

// Lines across, each named above it, or below it where another line is close above.
function drawMarks(u, marks) {
  const ratio = devicePixelRatio || 1, taken = [];
  const across = marks.filter((each) => each.y !== undefined && each.y !== null)
    .sort((one, other) => other.y - one.y);
  let above = -Infinity;
  for (const mark of across) {
    const at = u.valToPos(mark.y, "y", true);
    let place = at - above < 22 * ratio ? at + 13 * ratio : at - 5 * ratio;
    above = at;
    while (taken.some((each) => Math.abs(each - place) < 13 * ratio)) place += 4 * ratio;
    taken.push(place);
    drawMark(u, mark, place);
  }
  marks.filter((each) => each.x !== undefined).forEach((mark) => drawMark(u, mark));
}

function drawMark(u, { x, y, text, colour = "accent" }, place) {
  const pen = u.ctx, ratio = devicePixelRatio || 1;
  pen.save();
  pen.strokeStyle = pen.fillStyle = ink(colour);
  pen.lineWidth = 1.5 * ratio;
  pen.setLineDash([5 * ratio, 4 * ratio]);
  pen.font = `${11 * ratio}px system-ui, sans-serif`;
  pen.beginPath();
  const { left, top, width, height } = u.bbox;
  if (y !== undefined) {
    const at = u.valToPos(y, "y", true);
    if (at >= top && at <= top + height) {
      pen.moveTo(left, at);
      pen.lineTo(left + width, at);
      pen.stroke();
      pen.textAlign = "right";
      pen.lineWidth = 4 * ratio;
      pen.setLineDash([]);
      pen.strokeStyle = ink("page");
      pen.strokeText(text, left + width - 4 * ratio, place);
      pen.fillText(text, left + width - 4 * ratio, place);
    }
  } else {
    const at = u.valToPos(x, "x", true);
    if (at >= left && at <= left + width) {
      pen.moveTo(at, top);
      pen.lineTo(at, top + height);
      pen.stroke();
      pen.textAlign = at > left + width * 0.7 ? "right" : "left";
      pen.fillText(text, at + (at > left + width * 0.7 ? -5 : 5) * ratio, top + height - 8 * ratio);
    }
  }
  pen.restore();
}
