"use strict";
// Two runs side by side, judged by the rule of the command line. Text of results is only ever set as text.

const data = JSON.parse(document.getElementById("data").textContent);
const rule = JSON.parse(document.getElementById("rule").textContent);
const [base, other, threshold, changed] = ["base", "other", "threshold", "changed"].map((id) => document.getElementById(id));

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function text(metric, value) {
  if (value === null || value === undefined) return "";
  if (metric.unit === "count") return value.toFixed(0);
  return metric.unit === "s" ? `${Number(value.toPrecision(3))} s` : `${value.toFixed(2)}${metric.unit}`;
}

function change(metric, before, now) {
  const [one, two] = [text(metric, before), text(metric, now)];
  return one === two ? two : `${one || "none"} → ${two || "none"}`;
}

// By which factor less one the second value is worse; negative: better.
function worse(metric, before, now) {
  if (before === now) return 0;
  const [better, given] = metric.more ? [now, before] : [before, now];
  if (better <= 0 || given <= 0) return given > better ? Infinity : -Infinity;
  return given >= better ? given / better - 1 : 1 - better / given;
}

function limit(metric, place) {
  if (!metric.noisy) return metric.tolerance;
  const noise = data.noise[place][metric.name];
  return Math.max(Number(threshold.value) / 100, rule.sigmas * (noise === null ? rule.unmeasured : noise));
}

function kind(amount, most) {
  return amount > most ? "worse" : amount < -most ? "better" : "";
}

function cells(place, before, now) {
  const kinds = [];
  const status = before.status === now.status ? "" : now.status === "fail" ? "worse" : "better";
  kinds.push(status);
  const shown = [el("td", { class: status }, before.status === now.status ? now.status : `${before.status} → ${now.status}`)];
  for (const metric of data.metrics) {
    const [one, two] = [before[metric.name], now[metric.name]];
    if (one === null || two === null) {
      shown.push(el("td", { class: "number" }, change(metric, one, two)));
      continue;
    }
    const amount = worse(metric, one, two);
    const found = kind(amount, limit(metric, place));
    kinds.push(found);
    shown.push(el("td", { class: `number ${found}`, title: `${(100 * Math.abs(amount)).toFixed(1)}% ${amount > 0 ? "worse" : "better"}` },
      change(metric, one, two)));
  }
  return [shown, kinds];
}

function show() {
  const [before, now] = [data.rows[base.value] || {}, data.rows[other.value] || {}];
  const body = document.querySelector("#comparison tbody");
  body.replaceChildren();
  const counts = { worse: 0, better: 0, "": 0 };
  let common = 0;
  for (const place of Object.keys(now).filter((name) => name in before)) {
    common += 1;
    const key = data.keys[place];
    const [shown, kinds] = cells(place, before[place], now[place]);
    kinds.forEach((found) => { counts[found] += 1; });
    if (changed.checked && !kinds.some(Boolean)) continue;
    body.append(el("tr", {},
      el("td", { class: "key" }, el("a", { href: `models/${key.page}.html` }, `${key.suite}/${key.model}`)),
      ...[key.phase, key.backend, key.device].map((value) => el("td", { class: "key" }, value)), ...shown));
  }
  document.getElementById("found").textContent = `${common} rows in both: ${counts.worse} figures worse, ${counts.better} better`;
}

for (const run of data.runs) {
  base.append(new Option(run.name, run.id));
  other.append(new Option(run.name, run.id));
}
if (data.runs.length > 1) base.selectedIndex = 1;
const asked = new URLSearchParams(location.hash.slice(1));
if (data.rows[asked.get("base")]) base.value = asked.get("base");
if (data.rows[asked.get("other")]) other.value = asked.get("other");
document.querySelector("#comparison thead").append(el("tr", {},
  ...["model", "phase", "backend", "device", "status"].map((head) => el("th", {}, head)),
  ...data.metrics.map((metric) => el("th", { class: "number" }, metric.title))));
for (const control of [base, other, threshold, changed]) control.addEventListener("input", show);
show();
