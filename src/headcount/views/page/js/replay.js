// The slider that replays a removal: heads go in their order while the score, the time, the size
// and the cache move beside them. Numbers between two measured cuts are marked as such. What moves is
// the difference from all heads on the same rows: the cuts of a search are scored on several sets.

import { add, empty, h, say, select, svg } from "./dom.js";
import { fitted } from "./canvas.js";
import { amount, fixed, percent, range, signed, ticks } from "./numbers.js";
import { mask } from "./packed.js";
import { allowedChange, setGone, shown, stats } from "./state.js";

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
  view.about = h("p", { class: "rank" });
  view.box = h("div", { class: "replay" }, choice, view.chart, view.slider, view.ends, view.about, jumps);
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
    return track(name.filter(Boolean).join(", "), heads, { order });
  });
  for (const quantity of subject.quantities) {
    if (quantity.key.startsWith("importance") && quantity.values.every((each) => each !== null)) {
      made.push(track(`${quantity.label}, the weakest first`, heads, { ranked: quantity }));
    }
  }
  return made;
}

// A stop for every size that was cut. What a search found is beside the cut that it chose: `held`.
function track(name, heads, { order = { cuts: [], held: [], rows: "" }, ranked }) {
  const stops = [{ removed: 0, kept: new Uint8Array(heads).fill(1), cut: null }];
  const { subject } = shown(), answer = subject.cuts[subject.answer.cut]; // first of those of its size
  const [cuts, held] = [order.cuts, order.held].map((places) => places.map((place) => subject.cuts[place]));
  const found = (cut) => Boolean(answer) && cut.mask === answer.mask;
  for (const cut of [...cuts, ...held].sort((one, other) => other.kept - one.kept || found(other) - found(one))) {
    const removed = heads - cut.kept, last = stops[stops.length - 1], isHeld = held.includes(cut);
    if (removed > last.removed) stops.push({ removed, kept: mask(cut.mask, heads), cut: isHeld ? null : cut, held: isHeld ? cut : null });
    else if (isHeld && last.cut && last.cut.mask === cut.mask) last.held = cut;
  }
  if (ranked) stops.push({ removed: heads, kept: new Uint8Array(heads), cut: null });
  const scored = cuts.filter((cut) => cut.before && cut.before.value !== null).sort((one, other) => other.n - one.n);
  const one = new Set(scored.map((cut) => `${cut.rows}|${cut.before.value}`)).size === 1; // set of rows
  return { name, stops, ranked, rows: order.rows, last: stops[stops.length - 1].removed, full: scored.length ? scored[0].before : null, one };
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
  view.about.textContent = aboutTrack(track, metricOf(view.subject));
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
  const found = view.tracks.findIndex((track) => track.stops.some((each) => each.cut === cut || each.held === cut));
  if (found < 0) return;
  view.choice.value = String(found);
  use(view, view.tracks[found], false);
  go(view, shown().heads.length - cut.kept);
}

function announce(view) {
  const { lost } = changeAt(goneAt(view.track, view.at, view.rank), view);
  say(`${view.at} of ${shown().heads.length} heads gone` + (lost ? `, ${metricOf(view.subject)} ${signed(lost.value)} from all heads` : ""));
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
  const lost = stop.cut && stop.cut.difference;
  return lost && lost.value !== null ? lost : null;
}

function changeAt({ here, next }, { at, track }) {
  const one = changeOf(here, track);
  if (!next) return { lost: one, cut: here.cut, exact: true };
  const other = changeOf(next, track);
  if (!one || !other) return { lost: null };
  const share = (at - here.removed) / (next.removed - here.removed);
  return { lost: { value: one.value + share * (other.value - one.value) }, exact: false };
}

function metricOf(subject) {
  return (subject.full && subject.full.metric) || "score";
}

function aboutTrack(track, metric) {
  if (!track.full) return "";
  const bound = allowedChange(track.full), { asked } = shown().subject.answer;
  const allowed = bound === null ? "" : ` Dashed: the bound, ${signed(bound)}${asked.endsWith("%") ? ` (${asked} of ${fixed(track.full.value)})` : ""}.`;
  return `${metric} of each cut less that of all heads on the same rows: ${track.rows}.${allowed}`;
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
  const { lost, cut, exact } = changeAt(found, view);
  const metric = metricOf(subject), title = `${metric}, from all heads`;
  const { held } = found.next ? {} : found.here;
  if (lost && exact) parts.push(item(title, cut ? signed(lost.value) : "0", cut ? measured(cut) : whole(view.track), true));
  else if (lost) parts.push(item(title, `≈ ${signed(lost.value)}`, "between two measured cuts", false));
  else if (cut && cut.score && cut.score.value !== null) parts.push(item(metric, fixed(cut.score.value), [range(cut.score), ` on ${cut.rows}`], true));
  else if (!held) parts.push(item(metric, "–", "not measured for this order", false));
  if (held && held.difference) parts.push(item(`${title}, held out`, signed(held.difference.value), measured(held), true));
  const time = timeAt(kept, subject);
  if (time) {
    parts.push(item("Speed", `${time.exact ? "" : "≈ "}${fixed(time.speedup.value, 2)} × as fast`, [
      time.exact ? range(time.speedup, 2) : "between two that were timed",
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

// A cut's change with its interval, the two scores that it is the difference of, and their rows.
function measured(cut) {
  const instead = cut.before && cut.before.value !== null ? ` instead of ${fixed(cut.before.value)}` : "";
  return [range(cut.difference, 3, true), h("br"),
    cut.score && cut.score.value !== null && [`${fixed(cut.score.value)} ${range(cut.score)}${instead}`, h("br")], `on ${cut.rows}`];
}

function whole(track) {
  return track.one ? `${fixed(track.full.value)} ${range(track.full)} on ${track.rows}` : `on ${track.rows}`;
}

const HIGH = 150, PAD = { left: 8, right: 8, top: 14, bottom: 6 };

// The changes of this order above the slider, on the same axis as its thumb.
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
    "aria-label": `Change from all heads by heads removed, ${points.length - 1} measured cuts` },
    marked.map((value) => svg("line", { x1: PAD.left, x2: width - PAD.right, y1: y(value), y2: y(value), class: "rule" })),
    worst !== null && svg("line", { x1: PAD.left, x2: width - PAD.right, y1: y(worst), y2: y(worst), class: "bound" }),
    svg("path", { d: `${band}Z`, class: "band" }),
    svg("path", { d: path(points.map((p) => [x(p.removed), y(p.value)])), class: "line" }),
    points.map((p) => svg("circle", { cx: x(p.removed), cy: y(p.value), r: 3, class: "dot" })),
    marked.map((value) => svg("text", { x: width - PAD.right, y: y(value) - 4, class: "tick over", "text-anchor": "end" }, value ? signed(value, 2) : "0")),
    view.cursor));
  mark(view);
}

function mark(view) {
  if (!view.cursor) return;
  const x = view.scale.x(view.at);
  view.cursor.setAttribute("x1", x);
  view.cursor.setAttribute("x2", x);
}
