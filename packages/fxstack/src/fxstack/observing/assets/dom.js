"use strict";
// Elements from data, and links to the user's source. Text from the record is only ever set as text.

const record = JSON.parse(document.getElementById("record").textContent);
const files = Object.keys(record.sources);

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function table(heads, rows) {
  const isNumber = (column) => rows.length > 0 && typeof rows[0][column] === "number";
  const cell = (value) => (typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 1 }) : value);
  return el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head, column) => el("th", { class: isNumber(column) ? "number" : null }, head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value, column) =>
      el("td", { class: isNumber(column) ? "number" : null }, cell(value)))))));
}

function lineId(file, line) {
  return `line-${files.indexOf(file)}-${line}`;
}

// where: [file, line, function] or null
function place(where) {
  if (!where) return "an unknown line";
  const [file, line, name] = where;
  const text = `${file}:${line}${name ? ` in ${name}` : ""}`;
  const known = record.sources[file] && record.sources[file][line] !== undefined;
  return known ? el("a", { href: `#${lineId(file, line)}` }, text) : el("span", {}, text);
}

// Text in which "file:line" of a known file is a link.
function linked(text) {
  const parts = [];
  let rest = text;
  while (rest) {
    const found = firstPlace(rest);
    if (!found) break;
    parts.push(rest.slice(0, found.start), el("a", { href: `#${lineId(found.file, found.line)}` }, rest.slice(found.start, found.end)));
    rest = rest.slice(found.end);
  }
  return [...parts, rest];
}

function firstPlace(text) {
  let best = null;
  for (const file of files) {
    const start = text.indexOf(`${file}:`);
    if (start < 0 || (best && start >= best.start)) continue;
    const digits = /^\d+/.exec(text.slice(start + file.length + 1));
    if (digits && record.sources[file][digits[0]] !== undefined) {
      best = { file, line: Number(digits[0]), start, end: start + file.length + 1 + digits[0].length };
    }
  }
  return best;
}

function milliseconds(microseconds) {
  return `${(microseconds / 1000).toFixed(1)} ms`;
}

// A part that can be folded; what is in it is made when it is first opened.
function fold(title, make, open) {
  const made = el("details", {}, el("summary", {}, title));
  let filled = false;
  made.fill = () => {
    if (filled) return;
    filled = true;
    made.append(el("div", { class: "body" }, make(made)));
  };
  made.addEventListener("toggle", () => made.open && made.fill());
  if (open) {
    made.fill();
    made.open = true;
  }
  return made;
}
