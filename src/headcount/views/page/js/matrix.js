// Redundancy: the distance of every two heads, by layer or by similarity; distance against layer
// gap; layers in a tree; and which distances and inputs agree.

import { add, empty, figure, h, say, select, svg, table } from "./dom.js";
import { amountColour, css, ink, onTheme } from "./colours.js";
import { fitted, hint, sharp, spot } from "./canvas.js";
import { chart } from "./chart.js";
import { brief, fixed, pvalue, range, signed } from "./numbers.js";
import { square } from "./packed.js";
import { nameOf, on, pick, shown } from "./state.js";

const EDGE = 34;

export function redundancy() {
  const { subject } = shown();
  if (!subject.matrices.length) return [];
  const view = { matrix: subject.matrices[0], order: "layer", spots: {} };
  const box = h("div", {});
  const draw = () => add(empty(box), views(view, draw));
  draw();
  return [box, agreement(subject)];
}

const CHOICES = [["model", "Checkpoint"], ["inputs", "Inputs"], ["stack", "Stack"], ["distance", "Distance"]];

// A chooser for each thing in which matrices differ; one that does not exist gives way to the nearest.
function choosers(view, choose) {
  const { matrices } = shown().subject;
  return CHOICES.map(([key, label]) => {
    const names = [...new Set(matrices.map((each) => each[key]))];
    if (names.length < 2) return null;
    return select(label, names.map((name) => [name, name]), view.matrix[key], (name) => {
      const fits = (each) => CHOICES.filter(([other]) => each[other] === (other === key ? name : view.matrix[other])).length;
      const able = matrices.filter((each) => each[key] === name);
      choose({ matrix: able.reduce((best, each) => (fits(each) > fits(best) ? each : best)) });
    });
  });
}

function views(view, again) {
  const { matrix } = view;
  const choose = (change) => {
    Object.assign(view, change);
    again();
  };
  const tools = [
    ...choosers(view, choose),
    select("Order", [["layer", "by layer"], ["cluster", "similar heads together"]], view.order, (order) => choose({ order })),
  ];
  const map = figure({
    id: "matrix", title: "How similar the heads are", tools, command: matrix.command,
    lead: `Dark is similar, bright is different: ${matrix.distance} of every two heads of ${matrix.model}, mean over ${matrix.count} inputs (${matrix.inputs}); ` +
      `mean ${fixed(matrix.mean)}, largest standard error ${brief(matrix.error)}.`,
    table: () => nearestTable(view.values, matrix),
  }, heatmap(view), scale(matrix));
  return h("div", { class: "halves wide" }, map, h("div", {}, gapFigure(matrix), treeFigure(matrix)));
}

function scale(matrix) {
  const bar = h("canvas", { "aria-hidden": "true" }), pen = sharp(bar, 160, 8);
  for (let x = 0; x < 160; x++) {
    pen.fillStyle = css(amountColour(x / 159));
    pen.fillRect(x, 0, 1, 8);
  }
  const low = matrix.values.low, top = low + matrix.values.scale * (matrix.values.kind === "u2" ? 65535 : 255);
  return h("div", { class: "legend" }, h("span", {}, brief(low)), bar, h("span", {}, `${brief(top)} ${matrix.distance}`));
}

function heatmap(view) {
  const { matrix } = view;
  const canvas = h("canvas", { tabindex: "0", role: "application",
    "aria-label": `Distances of ${matrix.heads} by ${matrix.heads} heads. Arrow keys go along the heads.` });
  const place = h("div", { class: "map" }, canvas);
  const start = shown().subject.layout.find((each) => each.name === matrix.stack).start;
  const order = view.order === "cluster" ? matrix.order : [...Array(matrix.heads).keys()];
  const map = { canvas, matrix, order, start, image: null };
  square(matrix).then((values) => {
    view.values = map.values = values;
    map.image = painted(map);
    again();
  });
  const again = fitted(place, (width) => {
    map.width = width;
    drawMap(map);
  });
  onTheme(again);
  on("pick", again);
  listen(map);
  return place;
}

// One pixel for each pair; the canvas makes them larger.
function painted({ matrix, order, values }) {
  const n = matrix.heads;
  const small = document.createElement("canvas");
  small.width = small.height = n;
  const pen = small.getContext("2d"), image = pen.createImageData(n, n);
  const top = matrix.values.low + matrix.values.scale * (matrix.values.kind === "u2" ? 65535 : 255);
  const low = matrix.values.low, wide = top - low || 1;
  for (let row = 0; row < n; row++) {
    for (let column = 0; column < n; column++) {
      const value = values[order[row] * n + order[column]];
      const rgb = row === column ? [128, 128, 128] : amountColour((value - low) / wide);
      image.data.set([...rgb, row === column ? 60 : 255], 4 * (row * n + column));
    }
  }
  pen.putImageData(image, 0, 0);
  return small;
}

function drawMap(map) {
  if (!map.image || !map.width) return;
  const { matrix, order, start } = map, n = matrix.heads;
  const side = Math.min(map.width - EDGE - 4, 620);
  const pen = sharp(map.canvas, EDGE + side + 4, EDGE + side + 4);
  map.side = side;
  pen.imageSmoothingEnabled = side < n;
  pen.drawImage(map.image, EDGE, EDGE, side, side);
  pen.fillStyle = ink("soft");
  pen.strokeStyle = ink("page");
  pen.font = "11px system-ui, sans-serif";
  const { heads, picked } = shown();
  if (order.every((each, at) => each === at)) {
    let from = 0, beside = -99, above = -99; // where the last layer's number stands
    for (let at = 1; at <= n; at++) {
      if (at < n && heads[start + at].layer === heads[start + from].layer) continue;
      const [one, other] = [(from / n) * side, (at / n) * side], middle = EDGE + (one + other) / 2;
      const layer = heads[start + from].layer;
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      if (middle - beside >= 12) pen.fillText(layer, EDGE - 7, (beside = middle));
      pen.textAlign = "center";
      pen.textBaseline = "alphabetic";
      if (middle - above >= 20) pen.fillText(layer, (above = middle), EDGE - 8);
      if (at < n && side / n > 3) {
        pen.lineWidth = 1.5;
        pen.beginPath();
        pen.moveTo(EDGE + other, EDGE);
        pen.lineTo(EDGE + other, EDGE + side);
        pen.moveTo(EDGE, EDGE + other);
        pen.lineTo(EDGE + side, EDGE + other);
        pen.stroke();
      }
      from = at;
    }
  }
  const own = picked === null ? -1 : order.indexOf(picked - start);
  if (own >= 0) {
    const cell = Math.max(side / n, 3), at = EDGE + (own / n) * side;
    pen.strokeStyle = ink("accent");
    pen.lineWidth = 2;
    pen.strokeRect(EDGE, at, side, cell);
    pen.strokeRect(at, EDGE, cell, side);
  }
}

function listen(map) {
  const { canvas, matrix } = map;
  const under = (event) => {
    const [x, y] = spot(event, canvas).map((each) => Math.floor(((each - EDGE) / map.side) * matrix.heads));
    return x >= 0 && y >= 0 && x < matrix.heads && y < matrix.heads ? [map.order[y], map.order[x]] : null;
  };
  canvas.addEventListener("click", (event) => {
    const pair = under(event);
    if (pair) pick(map.start + pair[0], "matrix");
  });
  canvas.addEventListener("pointermove", (event) => {
    const pair = map.values && under(event);
    hint(event, pair ? `${nameOf(map.start + pair[0])} and ${nameOf(map.start + pair[1])}: ${fixed(map.values[pair[0] * matrix.heads + pair[1]], 4)}` : "");
  });
  canvas.addEventListener("pointerleave", (event) => hint(event, ""));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const { picked } = shown();
    const now = picked === null ? -1 : map.order.indexOf(picked - map.start);
    const next = Math.min(Math.max(now + step, 0), matrix.heads - 1);
    pick(map.start + map.order[next], "matrix");
    say(nameOf(map.start + map.order[next]));
  });
}

function nearestTable(values, matrix) {
  const { start } = shown().subject.layout.find((each) => each.name === matrix.stack);
  const n = matrix.heads;
  const rows = [...Array(n).keys()].map((row) => {
    let best = -1;
    for (let at = 0; at < n; at++) if (at !== row && (best < 0 || values[row * n + at] < values[row * n + best])) best = at;
    return [nameOf(start + row), best < 0 ? "" : nameOf(start + best), best < 0 ? "" : fixed(values[row * n + best], 4)];
  });
  return table(["head", "nearest head", matrix.distance], rows, "Nearest heads");
}

function gapFigure(matrix) {
  const { gap, distance } = matrix;
  if (!gap) return null;
  return figure({
    id: "gap", title: "Distance by layer gap", command: `headcount redundancy compare ${matrix.file}.npz`,
    lead: `Mean ${distance} by the number of layers between two heads; rank correlation ${signed(gap.spearman, 2)}` +
      (gap.p_value === null ? "." : `, p = ${pvalue(gap.p_value)} (permutation test).`),
    table: () => table(["layers between", distance, "pairs"], gap.gaps.map((each, at) => [each, fixed(gap.means[at], 4), gap.counts[at]]), "Layer gap"),
  }, chart({ x: gap.gaps, xLabel: "layers between", yLabel: distance, height: 220,
    series: [{ name: "mean distance", values: gap.means, colour: "accent" }] }));
}

function treeFigure(matrix) {
  const { tree, distance } = matrix;
  if (!tree) return null;
  const box = h("div", { class: "tree" });
  fitted(box, (width) => empty(box).append(dendrogram(tree, width)));
  return figure({
    id: "tree", title: "Clusters of layers", command: `headcount redundancy compare ${matrix.file}.npz`,
    lead: `Average linkage by the mean ${distance} of their heads.` +
      (tree.clusters.contiguous ? " Each of three clusters is a run of neighbouring layers." : " Three clusters are not runs of neighbouring layers."),
    table: () => table(["layer", "cluster"], tree.layers.map((each, at) => [each, tree.clusters.labels[at]]), "Clusters of layers"),
  }, box);
}

function dendrogram(tree, width) {
  const count = tree.layers.length, lines = Math.ceil((20 * count) / (width - 24)); // of numbers below each other
  const high = 158 + 12 * lines, foot = 10 + 12 * lines;
  const most = Math.max(...tree.joins.map((join) => join[2])) || 1;
  const x = (at) => 12 + ((at + 0.5) * (width - 24)) / count;
  const y = (away) => high - foot - (away / most) * (high - foot - 12);
  const nodes = {};
  tree.leaves.forEach((leaf, at) => { nodes[leaf] = { x: x(at), y: y(0) }; });
  const joins = tree.joins.map(([one, other, away], at) => {
    const [a, b] = [nodes[one], nodes[other]];
    nodes[count + at] = { x: (a.x + b.x) / 2, y: y(away) };
    return svg("path", { d: `M${a.x} ${a.y}V${y(away)}H${b.x}V${b.y}`, class: "line" });
  });
  return svg("svg", { width, height: high, role: "img", "aria-label": `Tree of ${count} layers` }, joins,
    tree.leaves.map((leaf, at) => svg("text", { x: x(at), y: high - foot + 16 + 12 * (at % lines), "text-anchor": "middle" }, tree.layers[leaf])));
}

function agreement(subject) {
  if (!subject.agreements.length) return null;
  const rows = subject.agreements.map(({ within, one, other, agreement: each }) => [within, one, other, fixed(each.pearson),
    range(each), fixed(each.spearman), pvalue(each.p_value), fixed(each.mean_difference)]);
  return figure({
    id: "agreement", title: "Do distances and inputs agree?",
    lead: "Pearson's r over pairs of heads, with a 95 % bootstrap interval over heads and the p of a permutation test (Mantel).",
    command: `headcount redundancy compare ${[...new Set(subject.matrices.map((each) => `${each.file}.npz`))].join(" ")}`,
  }, table(["within", "one", "other", "r", "95 % interval", "Spearman", "p", "mean difference"], rows, "Agreement of matrices"));
}
