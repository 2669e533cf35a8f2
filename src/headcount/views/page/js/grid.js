// The head grid: layers by heads of each stack, coloured by a quantity; removed heads are crossed
// out. A step of the slider draws only the cells that change.

import { h, say, select, table } from "./dom.js";
import { amountColour, css, ink, kindColour, onTheme } from "./colours.js";
import { fitted, hint, sharp, spot } from "./canvas.js";
import { brief, range } from "./numbers.js";
import { errorOf, extent, nameOf, on, pick, setQuantity, shareOf, shown, stats } from "./state.js";

const EDGE = 30;
const LETTERS = { separator: "E" }; // S is for the same token

export function headGrid() {
  const { subject } = shown();
  const box = h("div", { class: "grids" });
  const stacks = subject.layout.filter((stack) => stack.heads.some((count) => count));
  for (const stack of stacks) box.append(stackGrid(stack, stacks.length));
  const legend = h("div", { class: "legend" });
  const tell = () => drawLegend(legend);
  tell();
  on("colour", tell);
  onTheme(tell);
  return { box, legend, choice: colourChoice() };
}

export function colourChoice() {
  const { subject, quantity } = shown();
  if (!quantity) return null;
  const options = subject.quantities.map((each) => [each.key, each.label]);
  return select("Colour", options, quantity.key, setQuantity);
}

function stackGrid(stack, stacks) {
  const canvas = h("canvas", {
    tabindex: "0", role: "application", class: "headgrid",
    "aria-label": `Heads of the ${stack.name}: ${stack.heads.length} layers. ` +
      "Arrow keys move between heads, Enter opens the head card.",
  });
  const place = h("div", { class: "stack" },
    stacks > 1 && h("h4", {}, stack.name), canvas);
  const widest = Math.max(...stack.numbers.flat(), 0) + 1;
  const grid = { stack, canvas, widest, size: 0, pen: null, starts: [] };
  let start = stack.start;
  for (const count of stack.heads) {
    grid.starts.push(start);
    start += count;
  }
  const draw = (width) => {
    grid.size = Math.max(5, Math.min(46, Math.floor((width - EDGE - 2) / widest)));
    grid.high = Math.max(5, Math.min(grid.size, stack.heads.length > 32 ? 11 : stack.heads.length > 20 ? 15 : 34));
    grid.pen = sharp(canvas, EDGE + widest * grid.size + 2, stack.heads.length * grid.high + 20);
    everything(grid);
  };
  const again = fitted(place, draw);
  onTheme(again);
  on("colour", again);
  on("removed", (changed) => changed.forEach((head) => isOwn(grid, head) && cell(grid, head)));
  on("pick", ({ place: now, before }) => {
    if (before !== null && isOwn(grid, before)) cell(grid, before);
    if (now !== null && isOwn(grid, now)) cell(grid, now);
  });
  listen(grid);
  return place;
}

function isOwn(grid, head) {
  return shown().heads[head].stack === grid.stack.name;
}

function everything(grid) {
  const { pen, stack } = grid;
  if (!pen) return;
  pen.clearRect(0, 0, 1e5, 1e5);
  pen.fillStyle = ink("soft");
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const every = grid.high < 12 ? Math.ceil(14 / grid.high) : 1;
  stack.heads.forEach((_, layer) => {
    if (layer % every === 0) pen.fillText(layer, EDGE - 7, (layer + 0.5) * grid.high);
  });
  pen.textAlign = "center";
  const step = grid.size < 16 ? Math.ceil(18 / grid.size) : 1;
  for (let index = 0; index < grid.widest; index += step) {
    pen.fillText(index, EDGE + (index + 0.5) * grid.size, stack.heads.length * grid.high + 10);
  }
  for (const start of stack.heads.keys()) {
    for (let at = 0; at < stack.heads[start]; at++) cell(grid, grid.starts[start] + at);
  }
}

function cell(grid, place) {
  const { pen, size, high } = grid;
  if (!pen) return;
  const { heads, removed, picked, quantity } = shown();
  const head = heads[place];
  const x = EDGE + head.index * size, y = head.layer * high;
  const gap = size > 12 ? 2 : 1;
  stats.cells += 1;
  pen.clearRect(x, y, size, high);
  const share = quantity ? shareOf(quantity, place) : null;
  if (removed[place]) {
    pen.fillStyle = ink("removed");
    pen.fillRect(x + 1, y + 1, size - gap, high - gap);
    if (size > 7) {
      pen.strokeStyle = ink("faint");
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(x + size * 0.34, y + high * 0.3);
      pen.lineTo(x + size * 0.66, y + high * 0.7);
      pen.moveTo(x + size * 0.66, y + high * 0.3);
      pen.lineTo(x + size * 0.34, y + high * 0.7);
      pen.stroke();
    }
  } else {
    pen.fillStyle = share === null ? ink("blank") : quantity.kinds ? kindColour(quantity.values[place]) : css(amountColour(share));
    pen.fillRect(x + 1, y + 1, size - gap, high - gap);
    if (quantity && quantity.kinds && share !== null && size >= 12 && high >= 12) {
      pen.fillStyle = ink("page");
      pen.font = "600 11px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText(letterOf(quantity.kinds[quantity.values[place]]), x + size / 2, y + high / 2);
    }
  }
  if (picked === place) {
    pen.strokeStyle = ink("page");
    pen.lineWidth = 4;
    pen.strokeRect(x + 2.5, y + 2.5, size - 5, high - 5);
    pen.strokeStyle = ink("accent");
    pen.lineWidth = 2.5;
    pen.strokeRect(x + 1.5, y + 1.5, size - 3, high - 3);
  }
}

function letterOf(kind) {
  return LETTERS[kind] || kind[0].toUpperCase();
}

// A quantity of a head in words: a number with its unit, or the name of its kind.
export function valueOf(quantity, place) {
  const value = quantity.values[place];
  if (quantity.kinds) return value === null ? "none" : quantity.kinds[value];
  return `${brief(value)} ${quantity.unit}`.trim();
}

function under(grid, event) {
  const [x, y] = spot(event, grid.canvas);
  const layer = Math.floor(y / grid.high), index = Math.floor((x - EDGE) / grid.size);
  const numbers = grid.stack.numbers[layer];
  const at = numbers ? numbers.indexOf(index) : -1;
  return at < 0 ? null : grid.starts[layer] + at;
}

export function described(place) {
  const { quantity, removed, subject } = shown();
  const role = subject.roles && subject.roles.names[place];
  const parts = [nameOf(place)];
  if (role) parts.push(role);
  if (quantity && !quantity.kinds) parts.push(`${quantity.label} ${valueOf(quantity, place)}`);
  if (removed[place]) parts.push("removed");
  return parts.join(" · ");
}

function listen(grid) {
  const { canvas } = grid;
  canvas.addEventListener("click", (event) => {
    const place = under(grid, event);
    if (place !== null) pick(place, "grid");
  });
  canvas.addEventListener("pointermove", (event) => {
    const place = under(grid, event);
    hint(event, place === null ? "" : described(place));
  });
  canvas.addEventListener("pointerleave", (event) => hint(event, ""));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Enter") {
      document.getElementById("card").focus();
      event.preventDefault();
    }
    if (!step) return;
    event.preventDefault();
    const place = beside(grid, step);
    if (place !== null) {
      pick(place, "grid");
      say(described(place));
    }
  });
}

function beside(grid, [down, right]) {
  const { picked, heads } = shown();
  if (picked === null || !isOwn(grid, picked)) return grid.starts[0];
  let { layer, at } = heads[picked];
  if (right) {
    const next = at + right;
    return next < 0 || next >= grid.stack.heads[layer] ? null : grid.starts[layer] + next;
  }
  do layer += down; while (grid.stack.heads[layer] === 0);
  const count = grid.stack.heads[layer];
  return count === undefined ? null : grid.starts[layer] + Math.min(at, count - 1);
}

function drawLegend(legend) {
  const { quantity } = shown();
  legend.replaceChildren();
  if (!quantity) return;
  if (quantity.kinds) {
    const count = (at) => quantity.values.filter((each) => each === at).length;
    legend.append(...quantity.kinds.map((kind, at) => h("span", { class: "kind" },
      h("i", { class: "swatch", style: { background: kindColour(at) } }), ` ${letterOf(kind)} ${kind} ${count(at)}`)),
    h("span", { class: "what" }, quantity.what));
    return;
  }
  const [low, high] = extent(quantity);
  const bar = h("canvas", { "aria-hidden": "true" });
  const pen = sharp(bar, 160, 8);
  for (let x = 0; x < 160; x++) {
    pen.fillStyle = css(amountColour(x / 159));
    pen.fillRect(x, 0, 1, 8);
  }
  legend.append(
    h("span", {}, brief(low)), bar, h("span", {}, `${brief(high)} ${quantity.unit}`.trim()),
    h("span", { class: "what" }, quantity.what));
}

export function gridTable() {
  const { heads, quantity, removed } = shown();
  const rows = heads.map((head, place) => [
    head.stack, head.layer, head.index,
    quantity ? valueOf(quantity, place) : "", quantity ? range(errorOf(quantity, place), 4) : "",
    removed[place] ? "removed" : "kept",
  ]);
  return table(["stack", "layer", "head", quantity ? quantity.label : "", "95 % interval", ""], rows,
    "Heads and their values");
}
