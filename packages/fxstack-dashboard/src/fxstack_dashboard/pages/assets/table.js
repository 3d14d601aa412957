"use strict";
// The table of results: sorts by a column whose head is chosen, and shows the rows that fit search and filters.

const rows = [...document.querySelectorAll("#rows tbody tr")];
const heads = [...document.querySelectorAll("#rows thead th")];
const filters = [...document.querySelectorAll("select[data-filter]")];
const search = document.getElementById("search");

function valueOf(row, column) {
  const cell = row.cells[column];
  const given = cell.dataset.value;
  if (given === undefined) return cell.textContent.trim();
  return given === "" || Number.isNaN(Number(given)) ? given : Number(given);
}

// Cells without a value come last in both directions.
function compare(one, other, sign) {
  if (one === "" || other === "") return one === other ? 0 : one === "" ? 1 : -1;
  if (typeof one === "number" && typeof other === "number") return sign * (one - other);
  return sign * String(one).localeCompare(String(other), "en", { numeric: true });
}

function sortBy(column) {
  const head = heads[column];
  const descends = head.getAttribute("aria-sort") === "ascending";
  heads.forEach((each) => each.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", descends ? "descending" : "ascending");
  rows.sort((a, b) => compare(valueOf(a, column), valueOf(b, column), descends ? -1 : 1));
  document.querySelector("#rows tbody").append(...rows);
}

function show() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const row of rows) {
    const status = row.querySelector("td[title]");
    const text = `${row.textContent} ${status ? status.title : ""}`.toLowerCase();
    const fits = filters.every((f) => f.value === "" || row.dataset[f.dataset.filter] === f.value);
    const isShown = fits && words.every((word) => text.includes(word));
    row.classList.toggle("hidden", !isShown);
    found += isShown ? 1 : 0;
  }
  document.getElementById("found").textContent = `${found} of ${rows.length}`;
}

for (const filter of filters) {
  if (filter.options.length > 1) continue;
  const values = new Set(rows.map((row) => row.dataset[filter.dataset.filter]));
  for (const value of [...values].sort()) filter.append(new Option(value, value));
}
heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sortBy(column)));
document.getElementById("filters").addEventListener("input", show);
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
show();
