// What all views share: the subject, the selected head, and the removed heads.

const listeners = { pick: [], removed: [], colour: [] };
const state = { subject: null, heads: [], picked: null, removed: null, quantity: null };
// What one step of the slider touched, for those who measure it.
export const stats = { cells: 0, draws: 0, step: 0 };

export function shown() {
  return state;
}

export function open(subject) {
  for (const each of Object.values(listeners)) each.length = 0;
  state.subject = subject;
  state.heads = [];
  for (const stack of subject.layout) {
    stack.start = state.heads.length;
    stack.heads.forEach((count, layer) => {
      for (let index = 0; index < count; index++) {
        state.heads.push({ stack: stack.name, layer, index: stack.numbers[layer][index], at: index });
      }
    });
  }
  state.picked = null;
  state.removed = new Uint8Array(state.heads.length);
  state.quantity = subject.quantities.length ? subject.quantities[0] : null;
}

export function on(what, act) {
  listeners[what].push(act);
}

function tell(what, value) {
  for (const act of listeners[what]) act(value);
}

export function pick(place, from) {
  if (place !== null && (place < 0 || place >= state.heads.length)) return;
  const before = state.picked;
  state.picked = place;
  tell("pick", { place, before, from });
}

export function setRemoved(removed) {
  const changed = [];
  for (let place = 0; place < removed.length; place++) {
    if (removed[place] !== state.removed[place]) changed.push(place);
  }
  state.removed = removed;
  tell("removed", changed);
}

export function setQuantity(key) {
  state.quantity = state.subject.quantities.find((each) => each.key === key) || null;
  tell("colour");
}

export function nameOf(place) {
  const head = state.heads[place];
  const stack = state.subject.layout.length > 1 ? `${head.stack} ` : "";
  return `${stack}layer ${head.layer}, head ${head.index}`;
}

export function shortName(place) {
  const head = state.heads[place];
  const stack = state.subject.layout.length > 1 ? `${head.stack[0]}` : "";
  return `${stack}${head.layer}.${head.index}`;
}

export function extent(quantity) {
  if (!quantity.extent) {
    let low = Infinity, high = -Infinity;
    for (const value of quantity.values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    quantity.extent = [low, high];
  }
  return quantity.extent;
}

// The largest change that a bound on the loss allows: down from all heads, or up where less is better.
// A bound in percent is of the score of all heads on the rows at hand.
export function allowedChange(full) {
  const { headline, higher_is_better } = state.subject;
  if (!full || full.value === null || !headline.max_loss) return null;
  const relative = (headline.bound || "").trim().endsWith("%");
  const most = relative ? (Number.parseFloat(headline.bound.replace("\u2212", "-")) / 100) * full.value : headline.max_loss;
  return (higher_is_better ? -1 : 1) * Math.abs(most);
}

export function shareOf(quantity, place) {
  const value = quantity.values[place];
  if (value === null || value === undefined) return null;
  const [low, high] = extent(quantity);
  return high > low ? (value - low) / (high - low) : 0.5;
}

export function errorOf(quantity, place) {
  if (quantity.low && quantity.high && quantity.low[place] !== null) {
    return { low: quantity.low[place], high: quantity.high[place] };
  }
  if (quantity.stderr && quantity.stderr[place] !== null) {
    const value = quantity.values[place], wide = 1.96 * quantity.stderr[place];
    return { low: value - wide, high: value + wide };
  }
  return null;
}
