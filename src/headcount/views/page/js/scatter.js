// A scatter plot of heads with any quantities as axes; removed heads are hollow.

import { h, renewFolds, say, select, table } from "./dom.js";
import { amountColour, css, ink, isDark, onTheme } from "./colours.js";
import { fitted, hint, sharp, spot } from "./canvas.js";
import { brief, ticks } from "./numbers.js";
import { described } from "./grid.js";
import { extent, on, pick, shown } from "./state.js";

const PAD = { left: 58, right: 16, top: 12, bottom: 42 };

export function scatter() {
  const amounts = shown().subject.quantities.filter((each) => !each.kinds);
  if (amounts.length < 2) return null;
  const canvas = h("canvas", {
    tabindex: "0", role: "application",
    "aria-label": "Scatter plot of heads. Arrow keys select the next head in that direction.",
  });
  const place = h("div", { class: "scatter" }, canvas);
  const named = (key) => amounts.find((each) => each.key === key);
  const one = named("importance") || amounts[0];
  const other = named("replaceable") || amounts.find((each) => each !== one);
  const view = { canvas, x: other, y: one, points: [], width: 0 };
  const draw = (width) => { view.width = width; everything(view); };
  const again = fitted(place, draw);
  onTheme(again);
  on("pick", again);
  on("removed", again);
  const options = amounts.map((each) => [each.key, each.label]);
  const axis = (name, label) => select(label, options, view[name].key, (key) => {
    view[name] = named(key);
    everything(view);
    renewFolds(place.closest("figure"));
  });
  listen(view);
  const tools = [axis("x", "x axis"), axis("y", "y axis")];
  return { box: place, tools, table: () => numbers(view) };
}

function everything(view) {
  const { heads, removed, picked, subject } = shown();
  const width = view.width, height = Math.max(280, Math.min(460, width * 0.62));
  const pen = sharp(view.canvas, width, height);
  const [left, right] = padded(view.x), [low, high] = padded(view.y);
  const x = (value) => PAD.left + ((value - left) / (right - left)) * (width - PAD.left - PAD.right);
  const y = (value) => height - PAD.bottom - ((value - low) / (high - low)) * (height - PAD.top - PAD.bottom);
  axes(pen, view, { x, y, left, right, low, high, width, height });
  const layers = Math.max(...subject.layout.map((stack) => stack.heads.length));
  const size = heads.length > 400 ? 3 : 5, darkest = isDark() ? 0.28 : 0.05;
  view.points = [];
  heads.forEach((head, place) => {
    const [one, other] = [view.x.values[place], view.y.values[place]];
    if (one === null || other === null) return;
    const point = { place, x: x(one), y: y(other) };
    view.points.push(point);
    pen.beginPath();
    pen.arc(point.x, point.y, size, 0, 7);
    const colour = css(amountColour(layers > 1 ? darkest + ((0.95 - darkest) * head.layer) / (layers - 1) : 0.4));
    if (removed[place]) {
      pen.strokeStyle = colour;
      pen.lineWidth = 1.2;
      pen.stroke();
    } else {
      pen.fillStyle = colour;
      pen.globalAlpha = 0.85;
      pen.fill();
      pen.globalAlpha = 1;
    }
  });
  const own = view.points.find((point) => point.place === picked);
  if (own) {
    pen.strokeStyle = ink("accent");
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.arc(own.x, own.y, size + 4, 0, 7);
    pen.stroke();
  }
}

function padded(quantity) {
  const [low, high] = extent(quantity);
  const space = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
  return [low - space, high + space];
}

function axes(pen, view, { x, y, left, right, low, high, width, height }) {
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = ink("soft");
  pen.strokeStyle = ink("rule");
  pen.lineWidth = 1;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const value of ticks(left, right, Math.max(3, Math.round(width / 130)))) {
    pen.fillText(brief(value), x(value), height - PAD.bottom + 8);
  }
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of ticks(low, high, 5)) {
    pen.beginPath();
    pen.moveTo(PAD.left, y(value));
    pen.lineTo(width - PAD.right, y(value));
    pen.stroke();
    pen.fillText(brief(value), PAD.left - 8, y(value));
  }
  pen.fillStyle = ink("ink");
  pen.textBaseline = "alphabetic";
  pen.fillText(`${titled(view.x)} →`, width - PAD.right, height - 6);
  pen.textAlign = "left";
  pen.fillText(`↑ ${titled(view.y)}`, PAD.left, PAD.top);
}

function titled({ label, unit }) {
  return unit && unit !== "share" ? `${label}, ${unit}` : label;
}

function nearest(view, event) {
  const [x, y] = spot(event, view.canvas);
  let best = null, least = 400;
  for (const point of view.points) {
    const away = (point.x - x) ** 2 + (point.y - y) ** 2;
    if (away < least) [best, least] = [point, away];
  }
  return best;
}

function listen(view) {
  view.canvas.addEventListener("click", (event) => {
    const point = nearest(view, event);
    if (point) pick(point.place, "scatter");
  });
  view.canvas.addEventListener("pointermove", (event) => {
    const point = nearest(view, event);
    hint(event, point ? described(point.place) : "");
  });
  view.canvas.addEventListener("pointerleave", (event) => hint(event, ""));
  view.canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way || !view.points.length) return;
    event.preventDefault();
    const from = view.points.find((point) => point.place === shown().picked) || view.points[0];
    let best = null, least = Infinity;
    for (const point of view.points) {
      const along = (point.x - from.x) * way[0] + (point.y - from.y) * way[1];
      const aside = Math.abs((point.x - from.x) * way[1]) + Math.abs((point.y - from.y) * way[0]);
      if (along > 0.5 && along + 2 * aside < least) [best, least] = [point, along + 2 * aside];
    }
    const next = best || from;
    pick(next.place, "scatter");
    say(described(next.place));
  });
}

function numbers(view) {
  const rows = shown().heads.map((head, place) => [
    head.stack, head.layer, head.index, brief(view.x.values[place]), brief(view.y.values[place])]);
  return table(["stack", "layer", "head", view.x.label, view.y.label], rows, "Values of the scatter plot");
}
