// The slider that replays a removal: heads are removed in order while the score, the time, the size
// and the cache follow. Numbers between two measured models are marked as interpolated. The score is
// shown as the difference from all heads on the same rows: a search scores on several sets of rows.

import { add, empty, h, say, select, svg } from "./dom.js";
import { fitted } from "./canvas.js";
import { amount, fixed, percent, range, signed, ticks } from "./numbers.js";
import { mask } from "./packed.js";
import { allowedChange, setRemoved, shown, stats } from "./state.js";

export function replay() {
  const { subject } = shown();
  const tracks = allTracks(subject);
  if (!tracks.length) return null;
  const view = { subject, tracks, track: null, at: 0, playing: null };
  view.slider = h("input", {
    type: "range", min: 0, step: 1, value: 0, id: "ratio",
    "aria-label": "Heads kept", oninput: () => go(view, Number(view.slider.value)),
  });
  view.figures = h("dl", { class: "figures" });
  view.chart = h("div", { class: "track" });
  view.play = h("button", { type: "button", class: "plain", onclick: () => toggle(view) }, "▶ Replay");
  const jumps = h("div", { class: "jumps" },
    h("button", { type: "button", class: "plain", onclick: () => jump(view, -1) }, "◀ previous measured"),
    view.play,
    h("button", { type: "button", class: "plain", onclick: () => jump(view, 1) }, "next measured ▶"),
    subject.headline.selected !== null &&
      h("button", { type: "button", class: "plain", onclick: () => toSelected(view) }, "Selected model"));
  const names = tracks.map((track, place) => [place, track.name]);
  const choice = select("Order", names, "0", (place) => use(view, tracks[Number(place)], true));
  view.choice = choice.querySelector("select");
  view.ends = h("div", { class: "ends", "aria-hidden": "true" });
  view.about = h("p", { class: "rank" });
  view.box = h("div", { class: "replay" }, choice, view.chart, view.slider, view.ends, view.about, jumps);
  view.again = fitted(view.chart, (width) => drawTrack(view, width));
  use(view, tracks[0], false);
  toSelected(view);
  return { box: view.box, figures: view.figures, go: (at) => go(view, at), view };
}

function allTracks(subject) {
  const heads = shown().heads.length;
  const seeds = {};
  subject.orders.forEach((order) => {
    const key = `${order.study}|${order.method}`;
    seeds[key] = (seeds[key] || 0) + 1;
  });
  const made = subject.orders.map((order) => {
    const many = seeds[`${order.study}|${order.method}`] > 1;
    const name = [order.method, order.study && `in ${order.study}`, many && `seed ${order.seed}`];
    return track(name.filter(Boolean).join(", "), heads, { order });
  });
  for (const quantity of subject.quantities) {
    if (quantity.key.startsWith("importance") && quantity.values.every((each) => each !== null)) {
      made.push(track(`${quantity.label}, least important first`, heads, { ranked: quantity }));
    }
  }
  return made;
}

// A stop for every size that was pruned to. What a search selected is beside the model of the
// selection set with the same heads: `heldOut`.
function track(name, heads, { order = { models: [], held_out: [], rows: "" }, ranked }) {
  const stops = [{ removed: 0, kept: new Uint8Array(heads).fill(1), model: null }];
  const { subject } = shown(), selected = subject.pruned[subject.headline.selected]; // first of those of its size
  const [models, heldOut] = [order.models, order.held_out].map((indices) => indices.map((index) => subject.pruned[index]));
  const isSelected = (model) => Boolean(selected) && model.mask === selected.mask;
  for (const model of [...models, ...heldOut].sort((one, other) => other.kept - one.kept || isSelected(other) - isSelected(one))) {
    const removed = heads - model.kept, last = stops[stops.length - 1], isHeldOut = heldOut.includes(model);
    if (removed > last.removed) {
      stops.push({ removed, kept: mask(model.mask, heads), model: isHeldOut ? null : model, heldOut: isHeldOut ? model : null });
    } else if (isHeldOut && last.model && last.model.mask === model.mask) last.heldOut = model;
  }
  if (ranked) stops.push({ removed: heads, kept: new Uint8Array(heads), model: null });
  const scored = models.filter((model) => model.full).sort((one, other) => other.rows.n - one.rows.n);
  const oneSet = new Set(scored.map((model) => `${model.rows_text}|${model.full.value}`)).size === 1;
  return { name, stops, ranked, rows: order.rows, last: stops[stops.length - 1].removed, full: scored.length ? scored[0].full : null, oneSet };
}

// Which heads are removed when so many are: those of the last measured model, then the least important
// of those that the next one removes.
function removedAt(track, at, rank) {
  const stops = track.stops;
  let low = 0;
  while (low + 1 < stops.length && stops[low + 1].removed <= at) low++;
  const here = stops[low], next = stops[low + 1];
  const removed = here.kept.map((kept) => 1 - kept);
  if (here.removed === at || !next) return { removed, here, next: null };
  const going = [];
  for (let place = 0; place < removed.length; place++) if (here.kept[place] && !next.kept[place]) going.push(place);
  going.sort((one, other) => rank[one] - rank[other] || one - other);
  going.slice(0, at - here.removed).forEach((place) => { removed[place] = 1; });
  return { removed, here, next };
}

function use(view, track, keep) {
  stop(view);
  view.track = track;
  const ranking = track.ranked || view.subject.quantities.find((each) => each.key.startsWith("importance"));
  view.rank = ranking ? ranking.values : new Float32Array(shown().heads.length);
  view.slider.max = track.last;
  add(empty(view.ends), h("span", {}, "all heads"), h("span", {}, keptOf(track.last, " kept")));
  view.about.textContent = aboutTrack(track, view.subject.metric);
  view.again();
  go(view, keep ? Math.min(view.at, track.last) : 0);
}

function go(view, at) {
  const started = performance.now();
  view.at = at;
  if (Number(view.slider.value) !== at) view.slider.value = at;
  const position = removedAt(view.track, at, view.rank);
  setRemoved(position.removed);
  showFigures(view, position);
  mark(view);
  stats.draws += 1;
  stats.step = performance.now() - started;
}

function jump(view, side) {
  stop(view);
  const places = view.track.stops.map((each) => each.removed);
  const next = side > 0 ? places.find((each) => each > view.at) : places.reverse().find((each) => each < view.at);
  if (next !== undefined) go(view, next);
  announce(view);
}

function toSelected(view) {
  const { selected } = view.subject.headline;
  if (selected === null) return;
  const model = view.subject.pruned[selected];
  const index = view.tracks.findIndex((track) => track.stops.some((stop) => stop.model === model || stop.heldOut === model));
  if (index < 0) return;
  view.choice.value = String(index);
  use(view, view.tracks[index], false);
  go(view, shown().heads.length - model.kept);
}

function announce(view) {
  const { change } = changeAt(removedAt(view.track, view.at, view.rank), view);
  say(keptOf(view.at, " heads kept") + (change ? `, ${view.subject.metric} ${signed(change.value)} from all heads` : ""));
}

function toggle(view) {
  if (view.playing) return stop(view);
  if (view.at >= view.track.last) go(view, 0);
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const wait = calm ? 1200 : Math.max(30, Math.min(350, 9000 / Math.max(view.track.last, 1)));
  view.play.textContent = "❚❚ Pause";
  view.playing = setInterval(() => {
    if (view.at >= view.track.last) return stop(view);
    const next = calm ? view.track.stops.map((each) => each.removed).find((each) => each > view.at) : view.at + 1;
    go(view, next === undefined ? view.track.last : next);
  }, wait);
}

function stop(view) {
  clearInterval(view.playing);
  view.playing = null;
  view.play.textContent = "▶ Replay";
}

// The change from all heads that was measured at a stop; all heads have none.
function changeOf(stop, track) {
  if (stop.removed === 0) return track.full ? { value: 0, low: null, high: null } : null;
  return (stop.model && stop.model.difference) || null;
}

function changeAt({ here, next }, { at, track }) {
  const one = changeOf(here, track);
  if (!next) return { change: one, model: here.model, exact: true };
  const other = changeOf(next, track);
  if (!one || !other) return { change: null };
  const share = (at - here.removed) / (next.removed - here.removed);
  return { change: { value: one.value + share * (other.value - one.value) }, exact: false };
}

function aboutTrack(track, metric) {
  if (!track.full) return "";
  const bound = allowedChange(track.full), given = shown().subject.headline.bound;
  const allowed = bound === null ? "" : ` Dashed: the bound, ${signed(bound)}${given.endsWith("%") ? ` (${given} of ${fixed(track.full.value)})` : ""}.`;
  return `${metric} of each pruned model minus that of all heads on the same rows: ${track.rows}.${allowed}`;
}

// Where every head has as many parameters, the number is exact; else between two models it is interpolated.
function sizeAt({ here, next }, { at, subject, track }) {
  if (subject.size) return { now: subject.size.full - at * subject.size.head, all: subject.size.full, exact: true };
  const known = track.stops.find((stop) => stop.model && stop.model.parameters);
  if (!known) return null;
  const all = known.model.parameters[0];
  const of = (stop) => (stop.removed === 0 ? all : stop.model && stop.model.parameters && stop.model.parameters[1]);
  if (!of(here)) return null;
  if (!next) return { now: of(here), all, exact: true };
  if (!of(next)) return null;
  const share = (at - here.removed) / (next.removed - here.removed);
  return { now: of(here) + share * (of(next) - of(here)), all, exact: false };
}

// Time as a bench measured it; between two sizes of one bench, on the line between them.
function timeAt(kept, subject) {
  const timed = subject.bench.map((bench) => ({ on: bench.about.split(",")[0],
    rows: bench.rows.filter((row) => (row.kind === "removed" || row.kind === "dense") && row.speedup && row.seconds) }));
  for (const { on, rows } of timed) {
    const own = rows.find((row) => row.heads === kept);
    if (own) return { on, speedup: own.speedup, seconds: own.seconds, exact: true };
  }
  for (const { on, rows } of timed) {
    const above = rows.filter((row) => row.heads > kept).sort((one, other) => one.heads - other.heads)[0];
    const below = rows.filter((row) => row.heads < kept).sort((one, other) => other.heads - one.heads)[0];
    if (!above || !below) continue;
    const share = (kept - below.heads) / (above.heads - below.heads);
    const mixed = (one, other) => one + share * (other - one);
    const slower = mixed(1 / below.speedup.value, 1 / above.speedup.value); // time is on the line, not speed
    return { on, speedup: { value: 1 / slower }, seconds: { value: mixed(below.seconds.value, above.seconds.value) }, exact: false };
  }
  return null;
}

// Key-value heads that are still needed, of those that keep a cache.
function cacheAt(removed, subject) {
  let all = 0, left = 0;
  for (const stack of subject.layout) {
    if (stack.name === "encoder") continue;
    let start = stack.start;
    stack.heads.forEach((count, layer) => {
      const groups = stack.groups[layer], each = count / Math.max(groups, 1);
      for (let group = 0; group < groups; group++) {
        all += 1;
        for (let at = 0; at < each; at++) {
          if (!removed[start + group * each + at]) { left += 1; break; }
        }
      }
      start += count;
    });
  }
  return all ? { left, all } : null;
}

function showFigures(view, position) {
  const { subject } = view, heads = shown().heads.length, kept = heads - view.at;
  const item = (name, value, more, exact) =>
    h("div", { class: exact === false ? "between" : null },
      h("dt", {}, name), h("dd", {}, h("b", {}, value), more && h("span", {}, more)));
  const parts = [item("Heads kept", keptOf(view.at), percent(kept / heads, 1))];
  const { change, model, exact } = changeAt(position, view);
  const metric = subject.metric || "score", title = `${metric}, from all heads`;
  const { heldOut } = position.next ? {} : position.here;
  if (change && exact) parts.push(item(title, model ? signed(change.value) : "0", model ? measured(model) : fullScore(view.track), true));
  else if (change) parts.push(item(title, `≈ ${signed(change.value)}`, "interpolated between two measured models", false));
  else if (model && model.score) parts.push(item(metric, fixed(model.score.value), [range(model.score), ` on ${model.rows_text}`], true));
  else if (!heldOut) parts.push(item(metric, "–", "not measured for this order", false));
  if (heldOut && heldOut.difference) parts.push(item(`${title}, held-out set`, signed(heldOut.difference.value), measured(heldOut), true));
  const time = timeAt(kept, subject);
  if (time) {
    parts.push(item("Speed", `${time.exact ? "" : "≈ "}${fixed(time.speedup.value, 2)} × as fast`, [
      time.exact ? range(time.speedup, 2) : "interpolated between two timed models",
      time.seconds && h("br"), time.seconds && `${fixed(1000 * time.seconds.value, 1)} ms${time.on ? `, ${time.on}` : ""}`], time.exact));
  }
  const size = sizeAt(position, view);
  if (size) {
    parts.push(item("Parameters", `${size.exact ? "" : "≈ "}${amount(size.now)}`,
      `${percent(size.now / size.all, 1)} of ${amount(size.all)}${size.exact ? "" : ", interpolated"}`, size.exact));
  }
  const cache = cacheAt(position.removed, subject);
  if (cache) parts.push(item("Key-value cache", percent(cache.left / cache.all, 0), `${cache.left} of ${cache.all} key-value heads`));
  add(empty(view.figures), parts);
  view.slider.setAttribute("aria-valuetext", keptOf(view.at, " heads kept"));
}

// Heads are counted by those that stay, here as everywhere on the page.
function keptOf(removed, words = "") {
  return `${shown().heads.length - removed} of ${shown().heads.length}${words}`;
}

// A difference with its interval, the two scores that it is made of, and their rows.
function measured({ score, full, difference, rows_text }) {
  const instead = full ? ` instead of ${fixed(full.value)}` : "";
  return [range(difference, 3, true), h("br"), score && [`${fixed(score.value)} ${range(score)}${instead}`, h("br")], `on ${rows_text}`];
}

function fullScore(track) {
  return track.oneSet ? `${fixed(track.full.value)} ${range(track.full)} on ${track.rows}` : `on ${track.rows}`;
}

const HIGH = 150, PAD = { left: 8, right: 8, top: 14, bottom: 6 };

// The differences of this order above the slider, on the same axis as its thumb.
function drawTrack(view, width) {
  const { track } = view;
  empty(view.chart);
  const points = track.stops
    .map((stop) => ({ removed: stop.removed, ...(changeOf(stop, track) || {}) }))
    .filter((each) => each.value !== undefined);
  view.cursor = null;
  if (points.length < 2) return;
  const worst = allowedChange(track.full);
  const values = points.flatMap((each) => [each.value, each.low ?? each.value, each.high ?? each.value]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const space = (high - low) * 0.08 || 0.01;
  const x = (removed) => PAD.left + (removed / track.last) * (width - PAD.left - PAD.right);
  const y = (value) => PAD.top + (1 - (value - low + space) / (high - low + 2 * space)) * (HIGH - PAD.top - PAD.bottom);
  const path = (list) => list.map((each, at) => `${at ? "L" : "M"}${each[0].toFixed(1)} ${each[1].toFixed(1)}`).join("");
  const banded = points.map((each) => (each.removed ? each : { ...each, low: 0, high: 0 }))
    .filter((each) => each.low !== null && each.low !== undefined);
  const band = path([...banded.map((p) => [x(p.removed), y(p.high)]), ...banded.reverse().map((p) => [x(p.removed), y(p.low)])]);
  const marked = ticks(low, high, 3);
  view.scale = { x, y };
  view.cursor = svg("line", { y1: PAD.top - 8, y2: HIGH, class: "cursor" });
  view.chart.append(svg("svg", { width, height: HIGH, role: "img",
    "aria-label": `Difference from all heads by number of heads kept, ${points.length - 1} measured models` },
    marked.map((value) => svg("line", { x1: PAD.left, x2: width - PAD.right, y1: y(value), y2: y(value), class: "rule" })),
    worst !== null && svg("line", { x1: PAD.left, x2: width - PAD.right, y1: y(worst), y2: y(worst), class: "bound" }),
    svg("path", { d: `${band}Z`, class: "band" }),
    svg("path", { d: path(points.map((p) => [x(p.removed), y(p.value)])), class: "line" }),
    points.map((p) => svg("circle", { cx: x(p.removed), cy: y(p.value), r: 3, class: "dot" })),
    marked.map((value) => svg("text", { x: PAD.left, y: y(value) - 4, class: "tick over" }, value ? signed(value, 2) : "0")),
    view.cursor));
  mark(view);
}

function mark(view) {
  if (!view.cursor) return;
  const x = view.scale.x(view.at);
  view.cursor.setAttribute("x1", x);
  view.cursor.setAttribute("x2", x);
}
