// What changed in the heads: from one model to another, and gates over training.

import { empty, figure, h, say, select, svg, table } from "./dom.js";
import { ink, onTheme, signedColour, css } from "./colours.js";
import { fitted, hint, sharp, spot } from "./canvas.js";
import { chart } from "./chart.js";
import { brief, fixed, percent, pvalue, range, share, signed, ticks } from "./numbers.js";
import { unpack } from "./packed.js";
import { nameOf, on, pick, shown } from "./state.js";

export function transfer() {
  return shown().subject.transfers.flatMap((each, place) => [layers(each, place), correlation(each), recall(each)]);
}

function layers(found, place) {
  if (!found.layers.length) return null;
  const { subject } = shown();
  const stacks = [...new Set(found.layers.map((row) => row.stack))];
  const x = [...new Set(found.layers.map((row) => row.layer))].sort((one, other) => one - other);
  const at = (stack, name) => x.map((layer) => {
    const row = found.layers.find((each) => each.stack === stack && each.layer === layer);
    return row ? row[name] : null;
  });
  const wide = (stack, name, side) => x.map((layer) => {
    const row = found.layers.find((each) => each.stack === stack && each.layer === layer);
    return row && row[name] !== null ? row[name] + side * 1.96 * (row[`${name}_stderr`] || 0) : null;
  });
  const line = (stack, name, label) => ({ name: `${stacks.length > 1 ? `${stack}, ` : ""}${label}`, values: at(stack, name),
    low: wide(stack, name, -1), high: wide(stack, name, 1) });
  const top = stacks.flatMap((stack) => [line(stack, "mean", "mean of heads"), { ...line(stack, "max", "largest of heads"), dash: [6, 4] }]);
  const hidden = stacks.map((stack) => line(stack, "hidden", "hidden states"));
  const weights = stacks.map((stack) => ({ name: `${stacks.length > 1 ? `${stack}, ` : ""}weights`, values: at(stack, "weights"), kind: 2 }));
  const rows = found.layers.map((row) => [row.stack, row.layer, brief(row.mean), brief(row.max), brief(row.hidden), brief(row.weights)]);
  return figure({
    id: `transfer${place || ""}`, title: "What fine-tuning changed", command: found.command,
    lead: `${found.pretrained} → ${found.finetuned}, ${found.n} inputs${found.inputs ? ` (${found.inputs})` : ""}. ` +
      "Colour the head grid by drift or weight change to see it head by head.",
    table: () => table(["stack", "layer", "drift, mean", "drift, largest", "hidden states", "weights"], rows, "Change by layer"),
  }, h("div", { class: "halves" },
    chart({ x, series: top, xLabel: "layer", yLabel: "attention drift, bits", height: 260 }),
    chart({ x, series: hidden, xLabel: "layer", yLabel: "hidden states, L2", height: 260 }),
    weights.some((each) => each.values.some((value) => value !== null)) &&
      chart({ x, series: weights, xLabel: "layer", yLabel: "weights, mean |change|", height: 260 })));
}

function correlation(found) {
  const { subject } = shown();
  const drift = subject.quantities.find((each) => each.key === "drift");
  if (!drift || !found.importance.length) return null;
  const rows = found.importance.map((each) => [each.name, fixed(each.pearson.value), range(each.pearson), pvalue(each.p), fixed(each.spearman)]);
  return figure({
    id: "driftimportance", title: "Do important heads change most?",
    lead: "Importance of each head against its drift; the line is the regression.",
    command: found.command,
    table: () => table(["importance", "r", "95 % interval", "p", "Spearman"], rows, "Correlations"),
  }, h("div", { class: "halves" }, found.importance.map((each) => dots(each, drift))));
}

function dots({ name, values, pearson, slope, intercept }, drift) {
  const box = h("div", { class: "dots", tabindex: "0", role: "application",
    "aria-label": `${name} of each head against its drift. Arrow keys move between heads.` });
  byKey(box, shown().heads.length, "drift");
  const draw = (width) => {
    const high = 260, pad = { left: 48, right: 10, top: 24, bottom: 34 };
    const known = values.map((value, place) => [drift.values[place], value, place]).filter(([a, b]) => a !== null && b !== null);
    const [right, top] = [Math.max(...known.map((each) => each[0])) * 1.04 || 1, Math.max(...known.map((each) => each[1])) * 1.06 || 1];
    const x = (value) => pad.left + (value / right) * (width - pad.left - pad.right);
    const y = (value) => high - pad.bottom - (value / top) * (high - pad.top - pad.bottom);
    const { picked } = shown();
    const chosen = known.filter(([, , place]) => place === picked);
    empty(box).append(svg("svg", { width, height: high, role: "img", "aria-label": `${name} against drift` },
      ticks(0, top, 4).map((value) => [svg("line", { x1: pad.left, x2: width - pad.right, y1: y(value), y2: y(value), class: "rule" }),
        svg("text", { x: pad.left - 6, y: y(value) + 4, "text-anchor": "end" }, brief(value))]),
      ticks(0, right, 4).map((value) => svg("text", { x: x(value), y: high - pad.bottom + 15, "text-anchor": "middle" }, brief(value))),
      slope !== null && svg("line", { x1: x(0), x2: x(right), y1: y(intercept), y2: y(intercept + slope * right), class: "cursor" }),
      known.map(([a, b, place]) => svg("circle", { cx: x(a), cy: y(b), r: known.length > 400 ? 2.5 : 4, class: place === picked ? "point picked" : "point", onclick: () => pick(place, "drift") })),
      chosen.map(([a, b]) => svg("circle", { cx: x(a), cy: y(b), r: 8, class: "ring" })),
      svg("text", { x: width - pad.right, y: high - 3, "text-anchor": "end" }, "drift, bits →"),
      svg("text", { x: pad.left, y: 12 }, `↑ ${name}${pearson.value === null ? "" : `: r = ${fixed(pearson.value, 2)} ${range(pearson, 2)}`}`)));
  };
  const again = fitted(box, draw);
  on("pick", again);
  return box;
}

// Arrow keys move between heads, and say which.
function byKey(element, count, from) {
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const { picked } = shown();
    const next = Math.min(Math.max((picked === null ? -1 : picked) + step, 0), count - 1);
    pick(next, from);
    say(nameOf(next));
  });
}

function recall(found) {
  if (!found.recall.length) return null;
  const rows = [...found.recall].sort((one, other) => one.at - other.at);
  return figure({
    id: "recall", title: "Would pruning before fine-tuning find the same heads?",
    lead: "The share of the heads this task needs that are kept when the pre-trained model is pruned on its pre-training task.",
    command: found.command,
    table: () => table(["score kept at least", "recall", "chance"], rows.map((row) => [percent(row.at, 0), fixed(row.value), fixed(row.chance)]), "Recall"),
  }, chart({ x: rows.map((row) => row.at), xLabel: "score kept on the pre-training task, at least", yLabel: "share of needed heads kept", height: 260,
    xValues: share, yRange: [0, 1.03],
    series: [{ name: "recall", values: rows.map((row) => row.value) }, { name: "chance", values: rows.map((row) => row.chance), colour: "soft", dash: [6, 4] }] }));
}

export function gates() {
  const { subject } = shown();
  if (!subject.gates.length) return [];
  const box = h("div", {});
  const show = (place) => {
    const trace = subject.gates[place];
    const names = subject.gates.map((each, at) => [at, `${each.method}, ${each.study ? `${each.study} ` : ""}${each.name}`]);
    const tools = names.length > 1 ? select("Training", names, String(place), (value) => show(Number(value))) : null;
    empty(box).append(path(trace, tools), raster(trace));
  };
  show(0);
  return [box];
}

function path(trace, tools) {
  const { heads } = shown();
  const x = [...new Set([...trace.count_steps, ...trace.scores.map(([step]) => step)])].sort((one, other) => one - other);
  const opened = new Map(trace.count_steps.map((step, at) => [step, trace.opened[at]]));
  const scores = new Map(trace.scores);
  const losses = new Map(trace.losses);
  const side = scores.size ? scores : losses, name = scores.size ? "score" : "training loss";
  const series = [{ name: "gates open", values: x.map((step) => opened.get(step) ?? null), points: false }];
  if (side.size) series.push({ name, values: x.map((step) => side.get(step) ?? null), scale: "right", points: scores.size > 0 });
  const marks = trace.fixed ? [{ x: trace.fixed, text: "fixed here", colour: "soft" }] : [];
  return figure({
    id: "gates", title: "Gates over training", tools,
    lead: `${trace.method}${trace.task ? ` on ${trace.task}` : ""}: ${trace.closings} closings, ${trace.reopenings} reopenings of ${heads.length} gates.`,
    table: () => table(["step", "gates open", name], x.map((step) => [step, opened.get(step) ?? "", brief(side.get(step) ?? null)]), "Gates by step"),
    command: trace.command,
  }, chart({ x, series, marks, xLabel: "step", yLabel: "gates open", rightLabel: side.size ? name : undefined, height: 260 }));
}

// Every gate at every noted step: a row for each head, a column for each step.
function raster(trace) {
  const { heads } = shown();
  const canvas = h("canvas", { role: "application", tabindex: "0",
    "aria-label": `Values of ${heads.length} gates at ${trace.steps.length} steps. Arrow keys move between heads.` });
  const box = h("div", { class: "map" }, canvas);
  const view = { values: null, states: null, width: 0 };
  const draw = () => {
    if (!view.values || !view.width) return;
    const columns = trace.steps.length, row = Math.max(0.35, Math.min(12, 520 / heads.length));
    const left = 52, wide = view.width - left - 4, high = row * heads.length;
    const pen = sharp(canvas, view.width, high + 22);
    Object.assign(view, { row, left, wide });
    const small = document.createElement("canvas");
    [small.width, small.height] = [columns, heads.length];
    const brush = small.getContext("2d"), image = brush.createImageData(columns, heads.length);
    for (let step = 0; step < columns; step++) {
      for (let head = 0; head < heads.length; head++) {
        const place = step * heads.length + head;
        image.data.set([...signedColour(view.values[place] / (trace.largest || 1)), view.states[place] ? 255 : 110], 4 * (head * columns + step));
      }
    }
    brush.putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, left, 0, wide, high);
    pen.fillStyle = ink("soft");
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "top";
    let last = -99;
    heads.forEach((head, at) => {
      if (head.at === 0 && at * row - last > 11) pen.fillText(`layer ${head.layer}`, left - 6, (last = at * row));
    });
    pen.textAlign = "left";
    pen.fillText(`step ${trace.steps[0]}`, left, high + 6);
    pen.textAlign = "right";
    pen.fillText(`step ${trace.steps[columns - 1]}`, left + wide, high + 6);
    const { picked } = shown();
    if (picked !== null) {
      pen.strokeStyle = ink("accent");
      pen.lineWidth = 2;
      pen.strokeRect(left - 1, picked * row - 1, wide + 2, Math.max(row, 1) + 2);
    }
  };
  Promise.all([unpack(trace.values, "f4"), unpack(trace.states, "u1")]).then(([values, states]) => {
    Object.assign(view, { values, states });
    draw();
  });
  const again = fitted(box, (width) => {
    view.width = width;
    draw();
  });
  onTheme(again);
  on("pick", again);
  const under = (event) => {
    const [x, y] = spot(event, canvas), head = Math.floor(y / view.row), step = Math.floor(((x - view.left) / view.wide) * trace.steps.length);
    return head >= 0 && head < heads.length && step >= 0 && step < trace.steps.length ? [head, step] : null;
  };
  canvas.addEventListener("click", (event) => {
    const found = under(event);
    if (found) pick(found[0], "gates");
  });
  canvas.addEventListener("pointermove", (event) => {
    const found = view.values && under(event);
    hint(event, found ? `${nameOf(found[0])}, step ${trace.steps[found[1]]}: ${signed(view.values[found[1] * heads.length + found[0]])}${view.states[found[1] * heads.length + found[0]] ? "" : ", closed"}` : "");
  });
  canvas.addEventListener("pointerleave", (event) => hint(event, ""));
  byKey(canvas, heads.length, "gates");
  const key = h("p", { class: "rank" }, h("i", { class: "swatch", style: { background: css(signedColour(-0.8)) } }), " below zero ",
    h("i", { class: "swatch", style: { background: css(signedColour(0.8)) } }), " above zero; pale is closed");
  return figure({ id: "raster", title: "Every gate, step by step", command: trace.command,
    lead: "Rows are heads, columns are recorded steps; click a row to select its head." }, box, key);
}
