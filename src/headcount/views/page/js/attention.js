// What heads attend to in a sentence or an image, before and after pruning: shaded in the text
// itself, so that hundreds of tokens stay usable, or over the picture; and as maps beside it.

import { add, empty, figure, h, select, table } from "./dom.js";
import { amountColour, css, ink, onTheme } from "./colours.js";
import { fitted, hint, sharp, spot } from "./canvas.js";
import { brief, fixed } from "./numbers.js";
import { unpack } from "./packed.js";
import { nameOf, on, pick, shown } from "./state.js";

export function attention() {
  const { subject } = shown();
  if (!subject.sentences.length) return [];
  const box = h("div", {});
  const view = { sentence: subject.sentences[0], query: 0, box };
  const draw = () => drawAll(view, draw);
  on("pick", draw);
  draw();
  return [box];
}

function chosenHead(view) {
  const { picked, heads } = shown();
  const own = (place) => view.sentence.heads[place] && view.sentence.tokens[heads[place].stack];
  if (picked !== null && own(picked)) return picked;
  return Math.max(0, heads.findIndex((_, place) => own(place)));
}

function drawAll(view, again) {
  const { subject, heads } = shown();
  const { sentence } = view;
  const place = chosenHead(view), row = sentence.heads[place], tokens = sentence.tokens[heads[place].stack];
  const own = sentence.heads.map((each, at) => [at, each]).filter(([, each]) => each);
  const tools = [
    subject.sentences.length > 1 && select("Sentence or image", subject.sentences.map((each, at) => [at, each.text.slice(0, 60)]),
      String(subject.sentences.indexOf(sentence)), (at) => { view.sentence = subject.sentences[Number(at)]; view.query = 0; again(); }),
    select("Head", own.map(([at]) => [at, nameOf(at)]), String(place), (at) => pick(Number(at), "attention")),
    sentence.picture && sentence.maps && select("From", tokens.queries.map((token, at) => [at, at < sentence.picture.start ? token : `patch ${token}`]),
      String(view.query), (at) => { view.query = Number(at); again(); }),
  ];
  const unit = sentence.picture ? "patches" : "tokens";
  const said = row ? `${nameOf(place)}: entropy ${brief(row.entropy)} bits${row.distance === null ? "" : `, mean distance ${brief(row.distance)} ${unit}`}` +
    `${row.token ? `, most to “${row.token}” (${fixed(row.share, 2)})` : ""}` +
    (row.removed ? "; removed in the pruned model." : row.divergence === null ? "." : `; divergence after pruning ${brief(row.divergence)} bits.`) : "";
  const both = h("div", { class: "halves" });
  const fig = figure({
    id: "attention", title: sentence.picture ? "Attention in an image" : "Attention in a sentence", tools, lead: said, command: sentence.command,
    table: () => headTable(sentence),
  }, both);
  view.box.style.minHeight = `${view.box.offsetHeight}px`; // what stands below stays where it is
  add(empty(view.box), fig);
  if (!sentence.maps) {
    both.append(h("p", { class: "lead" }, "The attention maps were not saved; run the command again to save them."));
    return;
  }
  const sides = [["before", "Before pruning"], ["after", "After pruning"]].filter(([side]) => sentence.maps[side].some(Boolean));
  for (const [side, title] of sides) both.append(panel(view, side, title, place, tokens));
}

function panel(view, side, title, place, tokens) {
  const packed = view.sentence.maps[side][place];
  const box = h("div", { class: "look" }, sidesTitle(title));
  if (!packed) {
    box.append(h("p", { class: "lead" }, "This head is removed."));
    return box;
  }
  loaded(packed).then((weights) => {
    const words = h("p", { class: "tokens" });
    const shade = () => {
      const row = weights.row(Math.min(view.query, packed.shape[0] - 1));
      const most = Math.max(...row, 1e-9);
      add(empty(words), tokens.keys.slice(0, packed.shape[1]).map((token, at) => h("button", {
        type: "button", class: at === view.query && tokens.queries === tokens.keys ? "token query" : "token",
        title: fixed(row[at], 3), "aria-label": `${token}, ${fixed(row[at], 3)}`,
        style: { backgroundColor: `color-mix(in srgb, var(--glow) ${Math.round((88 * row[at]) / most)}%, transparent)` },
        onclick: () => ask(at),
      }, token)));
    };
    const ask = (at) => {
      view.query = Math.min(at, packed.shape[0] - 1);
      view.shades.forEach((each) => each());
      const from = view.box.querySelectorAll(".tools select");
      if (view.sentence.picture) from[from.length - 1].value = String(view.query);
    };
    if (side === "before") view.shades = [];
    if (view.sentence.picture) {
      const over = overPicture(packed, weights, tokens, view, ask);
      (view.shades = view.shades || []).push(over.redraw);
      add(box, h("p", { class: "rank" }, "Select a patch to see what this head attends to from there."), over.box);
      return;
    }
    (view.shades = view.shades || []).push(shade, () => map.redraw());
    const map = heatmap(packed, weights, tokens, view, ask);
    add(box, h("p", { class: "rank" }, "Select a token to see what this head attends to from there."), words, map.box);
    shade();
  });
  return box;
}

function sidesTitle(text) {
  return h("h4", {}, text);
}

function loaded(packed) {
  if (!packed.ready) {
    const [, keys] = packed.shape;
    packed.ready = packed.top
      ? Promise.all([unpack(packed.places, "u2"), unpack(packed.data, "u1")]).then(([places, data]) => ({
        row: (query) => {
          const full = new Float32Array(keys);
          for (let at = 0; at < packed.top; at++) full[places[query * packed.top + at]] = data[query * packed.top + at] / 255;
          return full;
        },
      }))
      : unpack(packed.data, "u1").then((data) => ({ row: (query) => Float32Array.from(data.subarray(query * keys, (query + 1) * keys), (each) => each / 255) }));
  }
  return packed.ready;
}

// The picture, every patch in the colour of its share of the attention from the chosen token.
function overPicture(packed, weights, tokens, view, ask) {
  const { picture } = view.sentence, { rows, columns, start } = picture;
  const canvas = h("canvas", { role: "img", "aria-label": `Attention over an image of ${rows} × ${columns} patches` });
  const rest = h("p", { class: "rank" });
  const box = h("div", { class: "map" }, canvas, rest);
  const [high, wide] = picture.shape;
  const seen = document.createElement("canvas");
  [seen.width, seen.height] = [wide, high];
  let side = 0;
  const draw = (width) => {
    side = Math.min(width - 2, 420);
    const tall = (side * high) / wide;
    const pen = sharp(canvas, side + 2, tall + 2);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(seen, 0, 0, side, tall);
    const all = weights.row(view.query), row = all.slice(start), most = Math.max(...row, 1e-9);
    const outside = all.slice(0, start).reduce((sum, each) => sum + each, 0);
    rest.textContent = start ? `${fixed(outside, 2)} of it goes to ${tokens.keys.slice(0, start).join(", ")}, which has no place in the image.` : "";
    const cell = (at) => [((at % columns) * side) / columns, (Math.floor(at / columns) * tall) / rows, side / columns, tall / rows];
    pen.globalAlpha = 0.6;
    row.forEach((value, at) => {
      pen.fillStyle = css(amountColour(Math.sqrt(value / most)));
      pen.fillRect(...cell(at));
    });
    pen.globalAlpha = 1;
    if (view.query < start) return;
    pen.strokeStyle = ink("accent");
    pen.lineWidth = 3;
    pen.strokeRect(...cell(view.query - start));
  };
  const redraw = fitted(box, draw);
  unpack(picture.data, "u1").then((colours) => {
    const brush = seen.getContext("2d"), image = brush.createImageData(wide, high);
    for (let at = 0; at < wide * high; at++) image.data.set([...colours.subarray(3 * at, 3 * at + 3), 255], 4 * at);
    brush.putImageData(image, 0, 0);
    redraw();
  });
  const under = (event) => {
    const [x, y] = spot(event, canvas);
    const column = Math.floor((x / side) * columns), line = Math.floor((y / ((side * high) / wide)) * rows);
    return column >= 0 && column < columns && line >= 0 && line < rows ? start + line * columns + column : null;
  };
  canvas.addEventListener("click", (event) => under(event) !== null && ask(under(event)));
  canvas.addEventListener("pointermove", (event) => {
    const key = under(event);
    hint(event, key === null ? "" : `${tokens.queries[view.query]} → ${tokens.keys[key]}: ${fixed(weights.row(view.query)[key], 3)}`);
  });
  canvas.addEventListener("pointerleave", (event) => hint(event, ""));
  return { box, redraw };
}

function heatmap(packed, weights, tokens, view, ask) {
  const canvas = h("canvas", { role: "img", "aria-label": `Attention of ${packed.shape[0]} tokens to ${packed.shape[1]}` });
  const box = h("div", { class: "map" }, canvas);
  const [rows, columns] = packed.shape;
  const small = document.createElement("canvas");
  [small.width, small.height] = [columns, rows];
  const brush = small.getContext("2d"), image = brush.createImageData(columns, rows);
  for (let query = 0; query < rows; query++) {
    weights.row(query).forEach((value, key) => image.data.set([...amountColour(Math.sqrt(value)), 255], 4 * (query * columns + key)));
  }
  brush.putImageData(image, 0, 0);
  let side = 0, edge = 0;
  const draw = (width) => {
    edge = rows <= 30 ? 74 : 0;
    side = Math.min(width - edge - 2, 420);
    const high = (side * rows) / columns;
    const pen = sharp(canvas, edge + side + 2, high + 2);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, edge, 0, side, high);
    pen.fillStyle = ink("soft");
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    if (edge) tokens.queries.slice(0, rows).forEach((token, at) => pen.fillText(token.slice(0, 11), edge - 6, ((at + 0.5) * high) / rows));
    pen.strokeStyle = ink("accent");
    pen.lineWidth = 2;
    pen.strokeRect(edge, (view.query * high) / rows, side, Math.max(high / rows, 2));
  };
  const redraw = fitted(box, draw);
  onTheme(redraw);
  const under = (event) => {
    const [x, y] = spot(event, canvas);
    return [Math.floor((y / ((side * rows) / columns)) * rows), Math.floor(((x - edge) / side) * columns)];
  };
  canvas.addEventListener("click", (event) => {
    const [query] = under(event);
    if (query >= 0 && query < rows) ask(query);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [query, key] = under(event);
    const known = query >= 0 && query < rows && key >= 0 && key < columns;
    hint(event, known ? `${tokens.queries[query]} → ${tokens.keys[key]}: ${fixed(weights.row(query)[key], 3)}` : "");
  });
  canvas.addEventListener("pointerleave", (event) => hint(event, ""));
  return { box, redraw };
}

function headTable(sentence) {
  const distance = `distance, ${sentence.picture ? "patches" : "tokens"}`;
  const rows = sentence.heads.map((row, place) => [place, row]).filter(([, row]) => row).map(([place, row]) => [
    nameOf(place), brief(row.entropy), brief(row.distance), row.token, fixed(row.share, 3), row.removed ? "removed" : brief(row.divergence)]);
  return table(["head", "entropy, bits", distance, "attends most to", "share", "divergence, bits"], rows, "Attention of this sentence or image");
}
