// Elements from plain values. Text always goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, ...children);
  return element;
}

export function add(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export function empty(element) {
  element.replaceChildren();
  return element;
}

export function select(label, options, chosen, change) {
  const box = h("select", { onchange: () => change(box.value) });
  for (const [value, name] of options) box.append(h("option", { value }, name));
  if (chosen !== undefined && chosen !== null) box.value = chosen;
  return h("label", { class: "choice" }, h("span", {}, label), box);
}

export function say(text) {
  document.getElementById("live").textContent = text;
}

// A figure with its title, a lead, the command that makes it, and its numbers as a table.
export function figure(options, ...content) {
  const { title, lead, command, table, id, tools } = options;
  const parts = [
    h("figcaption", {}, h("h3", {}, title), lead && h("p", { class: "lead" }, lead.replaceAll(" %", "\u00a0%"))),
    tools && h("div", { class: "tools" }, tools),
    ...content,
  ];
  const foot = h("div", { class: "foot" });
  if (table) foot.append(folded("Numbers", table));
  if (command) foot.append(folded("Command", () => h("pre", {}, h("code", {}, command))));
  if (foot.children.length) parts.push(foot);
  return h("figure", { id }, parts);
}

// What is built only when it is opened; `renew` builds it again where what it shows has changed.
export function folded(title, make) {
  const box = h("details", {}, h("summary", {}, title));
  box.renew = () => {
    while (box.children.length > 1) box.lastChild.remove();
    if (box.open) box.append(make());
  };
  box.addEventListener("toggle", box.renew);
  return box;
}

export function renewFolds(element) {
  element.querySelectorAll("details").forEach((each) => each.renew && each.open && each.renew());
}

export function table(columns, rows, caption) {
  const isNumber = (at) => rows.some((row) => typeof row[at] === "number");
  const head = h("tr", {}, columns.map((name, at) => h("th", { scope: "col", class: isNumber(at) ? "number" : null }, name)));
  const body = rows.map((row) =>
    h("tr", {}, row.map((cell) =>
      h("td", { class: typeof cell === "number" ? "number" : String(cell).length > 40 ? "long" : null }, cell))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "table" },
    h("table", {}, h("thead", {}, head), h("tbody", {}, body)));
}
