// The slider that replays a removal: heads go in their order while the score, the time, the size
// and the cache move beside them. Numbers between two measured cuts are marked as such.

import { add, empty, h, say, select, svg } from "./dom.js";
import { fitted } from "./canvas.js";
import { amount, fixed, percent, range, signed, ticks } from "./numbers.js";
import { mask } from "./packed.js";
import { setGone, shown, stats, worstAllowed } from "./state.js";

export function replay() {
  const { subject } = shown();
  const tracks = allTracks(subject);
  if (!tracks.length) return null;
  const view = { subject, tracks, track: null, at: 0, playing: null };
  view.slider = h("input", {
    type: "range", min: 0, step: 1, value: 0, id: "ratio",
    "aria-label": "Heads removed", oninput: () => go(view, Number(view.slider.value)),
  });
  view.figures = h("dl", { class: "figures" });
  view.chart = h("div", { class: "track" });
  view.play = h("button", { type: "button", class: "plain", onclick: () => toggle(view) }, "▶ Replay");
  const jumps = h("div", { class: "jumps" },
    h("button", { type: "button", class: "plain", onclick: () => jump(view, -1) }, "◀ measured cut"),
    view.play,
    h("button", { type: "button", class: "plain", onclick: () => jump(view, 1) }, "measured cut ▶"),
    subject.answer.cut !== null && subject.answer.cut !== undefined &&
      h("button", { type: "button", class: "plain", onclick: () => toAnswer(view) }, "The answer"));
  const names = tracks.map((track, place) => [place, track.name]);
  const choice = select("Order", names, "0", (place) => use(view, tracks[Number(place)], true));
  view.choice = choice.querySelector("select");
  view.ends = h("div", { class: "ends", "aria-hidden": "true" });
  view.box = h("div", { class: "replay" }, choice, view.chart, view.slider, view.ends, jumps);
  view.again = fitted(view.chart, (width) => drawTrack(view, width));
  use(view, tracks[0], false);
  toAnswer(view);
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
    return track(name.filter(Boolean).join(", "), order.cuts.map((place) => subject.cuts[place]), heads);
  });
  for (const quantity of subject.quantities) {
    if (quantity.key.startsWith("importance") && quantity.values.every((each) => each !== null)) {
      made.push(track(`${quantity.label}, the weakest first`, [], heads, quantity));
    }
  }
  return made;
}

function track(name, cuts, heads, ranked) {
  const stops = [{ removed: 0, kept: new Uint8Array(heads).fill(1), cut: null }];
  const { subject } = shown(), answer = subject.cuts[subject.answer.cut]; // first of those of its size
  for (const cut of [...cuts].sort((one, other) => other.kept - one.kept || (other === answer) - (one === answer))) {
    const removed = heads - cut.kept;
    if (removed > stops[stops.length - 1].removed) stops.push({ removed, cut, kept: mask(cut.mask, heads) });
  }
  if (ranked) stops.push({ removed: heads, kept: new Uint8Array(heads), cut: null });
  const scored = cuts.find((cut) => cut.before && cut.before.value !== null);
  const { full } = subject; // of runs that start from several trainings, each has its own
  return { name, stops, ranked, last: stops[stops.length - 1].removed, full: scored ? { ...full, ...scored.before } : full };
}

// Which heads are gone when so many are: those of the last measured cut, then the weakest of those
// that the next one removes.
function goneAt(track, at, rank) {
  const stops = track.stops;
  let low = 0;
  while (low + 1 < stops.length && stops[low + 1].removed <= at) low++;
  const here = stops[low], next = stops[low + 1];
  const gone = here.kept.map((kept) => 1 - kept);
  if (here.removed === at || !next) return { gone, here, next: null };
  const going = [];
  for (let place = 0; place < gone.length; place++) if (here.kept[place] && !next.kept[place]) going.push(place);
  going.sort((one, other) => rank[one] - rank[other] || one - other);
  going.slice(0, at - here.removed).forEach((place) => { gone[place] = 1; });
  return { gone, here, next };
}

function use(view, track, keep) {
  stop(view);
  view.track = track;
  const ranking = track.ranked || view.subject.quantities.find((each) => each.key.startsWith("importance"));
  view.rank = ranking ? ranking.values : new Float32Array(shown().heads.length);
  view.slider.max = track.last;
  add(empty(view.ends), h("span", {}, "all heads"), h("span", {}, `${track.last} of ${shown().heads.length} gone`));
  view.again();
  go(view, keep ? Math.min(view.at, track.last) : 0);
}

function go(view, at) {
  const started = performance.now();
  view.at = at;
  if (Number(view.slider.value) !== at) view.slider.value = at;
  const found = goneAt(view.track, at, view.rank);
  setGone(found.gone);
  tellFigures(view, found);
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

function toAnswer(view) {
  const { cut: place } = view.subject.answer;
  if (place === null || place === undefined) return;
  const cut = view.subject.cuts[place];
  const found = view.tracks.findIndex((track) => track.stops.some((each) => each.cut === cut));
  if (found < 0) return;
  view.choice.value = String(found);
  use(view, view.tracks[found], false);
  go(view, shown().heads.length - cut.kept);
}

function announce(view) {
  const { score } = scoreAt(goneAt(view.track, view.at, view.rank), view);
  say(`${view.at} of ${shown().heads.length} heads gone` + (score ? `, score ${fixed(score.value)}` : ""));
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

function scoreAt({ here, next }, view) {
  const { full } = view.track;
  const of = (stop) => (stop.removed === 0 ? full : stop.cut && stop.cut.score);
  const one = of(here);
  if (!next) return { score: one, cut: here.cut, exact: true };
  const other = of(next);
  if (!one || !other || one.value === null || other.value === null) return { score: null };
  const share = (view.at - here.removed) / (next.removed - here.removed);
  return { score: { value: one.value + share * (other.value - one.value) }, exact: false };
}

// Where every head has as many parameters, the number is known; else between two cuts it is a guess.
function sizeAt({ here, next }, { at, subject, track }) {
  if (subject.size) return { now: subject.size.before - at * subject.size.head, all: subject.size.before, exact: true };
  const known = track.stops.find((stop) => stop.cut && stop.cut.parameters);
  if (!known) return null;
  const all = known.cut.parameters[0];
  const of = (stop) => (stop.removed === 0 ? all : stop.cut && stop.cut.parameters && stop.cut.parameters[1]);
  if (!of(here)) return null;
  if (!next) return { now: of(here), all, exact: true };
  if (!of(next)) return null;
  const share = (at - here.removed) / (next.removed - here.removed);
  return { now: of(here) + share * (of(next) - of(here)), all, exact: false };
}

// Time as a bench measured it; between two sizes of one bench, on the line between them.
function timeAt(kept, subject) {
  const timed = subject.bench.map((bench) => ({ on: bench.about.split(",")[0],
    rows: bench.rows.filter((row) => (row.kind === "removed" || row.kind === "dense") && row.ratio && row.seconds) }));
  for (const { on, rows } of timed) {
    const own = rows.find((row) => row.heads === kept);
    if (own) return { on, ratio: own.ratio, seconds: own.seconds, exact: true };
  }
  for (const { on, rows } of timed) {
    const above = rows.filter((row) => row.heads > kept).sort((one, other) => one.heads - other.heads)[0];
    const below = rows.filter((row) => row.heads < kept).sort((one, other) => other.heads - one.heads)[0];
    if (!above || !below) continue;
    const share = (kept - below.heads) / (above.heads - below.heads);
    const mixed = (name) => ({ value: below[name].value + share * (above[name].value - below[name].value) });
    return { on, ratio: mixed("ratio"), seconds: mixed("seconds"), exact: false };
  }
  return null;
}

// Key-value heads that are still needed, of those that keep a cache.
function cacheAt(gone, subject) {
  let all = 0, left = 0;
  for (const stack of subject.layout) {
    if (stack.name === "encoder") continue;
    let start = stack.start;
    stack.heads.forEach((count, layer) => {
      const groups = stack.groups[layer], each = count / Math.max(groups, 1);
      for (let group = 0; group < groups; group++) {
        all += 1;
        for (let at = 0; at < each; at++) {
          if (!gone[start + group * each + at]) { left += 1; break; }
        }
      }
      start += count;
    });
  }
  return all ? { left, all } : null;
}

function tellFigures(view, found) {
  const { subject } = view, heads = shown().heads.length, kept = heads - view.at;
  const item = (name, value, more, exact) =>
    h("div", { class: exact === false ? "between" : null },
      h("dt", {}, name), h("dd", {}, h("b", {}, value), more && h("span", {}, more)));
  const parts = [item("Heads gone", `${view.at} of ${heads}`, percent(view.at / heads, 1))];
  const { score, cut, exact } = scoreAt(found, view);
  const metric = (subject.full && subject.full.metric) || "score";
  if (score && score.value !== null) {
    const lost = cut && cut.difference ? `${signed(cut.difference.value)} ${range(cut.difference, 3, true)} from all heads` : "";
    parts.push(exact
      ? item(metric, fixed(score.value), [range(score), lost && h("br"), lost], true)
      : item(metric, `≈ ${fixed(score.value)}`, "between two measured cuts", false));
  } else parts.push(item(metric, "–", "not measured for this order", false));
  const time = timeAt(kept, subject);
  if (time) {
    const quick = `${time.exact ? "" : "≈ "}${fixed(time.ratio.value, 2)} ×`;
    parts.push(item("Time", quick, [
      time.exact ? range(time.ratio, 2) + " of the dense model" : "of the dense model, between two that were timed",
      time.seconds && h("br"), time.seconds && `${fixed(1000 * time.seconds.value, 1)} ms${time.on ? `, ${time.on}` : ""}`], time.exact));
  }
  const size = sizeAt(found, view);
  if (size) {
    parts.push(item("Parameters", `${size.exact ? "" : "≈ "}${amount(size.now)}`,
      `${percent(size.now / size.all, 1)} of ${amount(size.all)}${size.exact ? "" : ", between two cuts"}`, size.exact));
  }
  const cache = cacheAt(found.gone, subject);
  if (cache) parts.push(item("Key-value cache", percent(cache.left / cache.all, 0), `${cache.left} of ${cache.all} key-value heads`));
  add(empty(view.figures), parts);
  view.slider.setAttribute("aria-valuetext", `${view.at} of ${heads} heads removed`);
}

const HIGH = 150, PAD = { left: 8, right: 8, top: 14, bottom: 6 };

// The scores of this order above the slider, on the same axis as its thumb.
function drawTrack(view, width) {
  const { track } = view;
  empty(view.chart);
  const points = track.stops
    .map((stop) => ({ removed: stop.removed, ...((stop.removed === 0 ? track.full : stop.cut && stop.cut.score) || {}) }))
    .filter((each) => each.value !== undefined && each.value !== null);
  view.cursor = null;
  if (points.length < 2) return;
  const worst = worstAllowed(track.full);
  const values = points.flatMap((each) => [each.value, each.low ?? each.value, each.high ?? each.value]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const space = (high - low) * 0.08 || 0.01;
  const x = (removed) => PAD.left + (removed / track.last) * (width - PAD.left - PAD.right);
  const y = (value) => PAD.top + (1 - (value - low + space) / (high - low + 2 * space)) * (HIGH - PAD.top - PAD.bottom);
  const path = (list) => list.map((each, at) => `${at ? "L" : "M"}${each[0].toFixed(1)} ${each[1].toFixed(1)}`).join("");
  const banded = points.filter((each) => each.low !== null && each.low !== undefined);
  const band = path([...banded.map((p) => [x(p.removed), y(p.high)]), ...banded.reverse().map((p) => [x(p.removed), y(p.low)])]);
  const marked = ticks(low, high, 3);
  view.scale = { x, y };
  view.cursor = svg("line", { y1: PAD.top - 8, y2: HIGH, class: "cursor" });
  view.chart.append(svg("svg", { width, height: HIGH, role: "img",
    "aria-label": `Score by heads removed, ${points.length} measured cuts` },
    marked.map((value) => svg("line", { x1: PAD.left, x2: width - PAD.right, y1: y(value), y2: y(value), class: "rule" })),
    worst !== null && svg("line", { x1: PAD.left, x2: width - PAD.right, y1: y(worst), y2: y(worst), class: "bound" }),
    svg("path", { d: `${band}Z`, class: "band" }),
    svg("path", { d: path(points.map((p) => [x(p.removed), y(p.value)])), class: "line" }),
    points.map((p) => svg("circle", { cx: x(p.removed), cy: y(p.value), r: 3, class: "dot" })),
    marked.map((value) => svg("text", { x: width - PAD.right, y: y(value) - 4, class: "tick over", "text-anchor": "end" }, fixed(value, 2))),
    view.cursor));
  mark(view);
}

function mark(view) {
  if (!view.cursor) return;
  const x = view.scale.x(view.at);
  view.cursor.setAttribute("x1", x);
  view.cursor.setAttribute("x2", x);
}
