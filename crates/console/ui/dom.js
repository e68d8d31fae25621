// Makes elements. Texts become text nodes and nothing else: no name of an object is ever read as markup.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

// A name is broken behind a slash, before it is broken anywhere.
export const name = (text) => make("span", { class: "name-of" }, String(text ?? "–").split(/(?<=\/)/).flatMap((part, at) => (at > 0 ? [make("wbr"), part] : [part])));
export const several = (times, what) => `${count(times)} ${what}${times === 1 ? "" : "s"}`;
export const count = (number) => (number === null || number === undefined ? "–" : number.toLocaleString("en"));

export function rate(number) {
  if (number === null || number === undefined) return "–";
  return number === 0 ? "0" : number < 10 ? number.toFixed(2) : number.toFixed(0);
}

export function latency(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  return seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : `${seconds.toFixed(2)} s`;
}

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; number >= 1024 && at < units.length - 1; at++) number /= 1024;
  return `${number.toFixed(at ? 1 : 0)} ${units[at]}`;
}

export function time(seconds) {
  if (!seconds) return "–";
  const at = new Date(seconds * 1000);
  if (Number.isNaN(at.getTime())) return "–";
  return make("time", { datetime: at.toISOString() }, at.toISOString().replace("T", " ").slice(0, 19) + "Z");
}

export function facts(list) {
  const rows = list.map(([what, value, kind]) => make("div", {}, make("dt", {}, what), make("dd", { class: kind }, value)));
  return make("dl", { class: "facts" }, rows);
}

// Where it is narrow, each row is a card and each cell has its head beside it; the roles stay, whatever the style says.
export function table(caption, heads, rows) {
  const group = { role: "rowgroup" };
  const head = make("tr", { role: "row" }, heads.map((text) => make("th", { role: "columnheader", scope: "col" }, text)));
  const body = rows.map((cells) => make("tr", { role: "row" }, cells.map((cell, at) => make("td", { role: "cell", "data-head": heads[at] }, make("div", {}, cell)))));
  const all = make("table", { role: "table", "aria-label": caption }, make("thead", group, head), make("tbody", group, body));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, all);
}

// A field for words, which waits until nobody types.
export function search(label, value, found) {
  let timer = 0;
  const field = make("input", { type: "search", name: "search", value, autocomplete: "off", spellcheck: "false" });
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => found(field.value), 200);
  });
  return make("label", { class: "wide" }, label, field);
}
