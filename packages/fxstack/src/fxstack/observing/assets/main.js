// The page: sections, search, folding, and following links to parts that are folded.

const SECTIONS = [
  ["graph breaks", breakGroups().map(breakEntry)],
  ["recompilations", record.recompiles.map(recompileEntry)],
  ["runs uncompiled", record.uncompiled.map(leftEntry)],
  ["steps by time", record.steps.map(stepRow), ["step", "on", "runs", "shortest, us", "in all, ms", "share, %", "bytes", "GB/s", "of a copy, %"]],
  ["compilations", record.frames.map(frameEntry)],
  ["graphs", record.graphs.map(graphEntry)],
  ["guards", record.guards.map(guardEntry)],
  ["kernels", kernelEntries()],
  ["memory", record.memory.map(memoryEntry)],
  ["library calls", callEntries(), ["operator", "calls"]],
  ["cache", record.cache.map(cacheRow), ["what", "state", "key", "for"]],
  ["source", files.map(sourceEntry)],
];
const entries = [];

function build() {
  const contents = document.getElementById("contents"), main = document.getElementById("sections");
  const versions = Object.entries(record.versions).map(([name, version]) => `${name} ${version}`).join(", ");
  main.prepend(el("p", { class: "soft" }, `${record.when}, ${versions}`));
  main.append(el("h2", { id: "time" }, "time"));
  main.append(...(record.spans.length ? [...timeline(record.spans), phases(record.spans)] : ["nothing was compiled"]));
  contents.append(el("a", { href: "#time" }, "time"));
  for (const [name, items, heads] of SECTIONS) {
    const id = name.replaceAll(" ", "-");
    contents.append(el("a", { href: `#${id}` }, name, el("span", { class: "count" }, String(items.length))));
    main.append(el("h2", { id }, name), ...(items.length ? drawn(items, heads) : [el("p", { class: "soft" }, "none")]));
  }
}

function drawn(items, heads) {
  if (heads) {
    const made = table(heads, items.map((item) => item.row));
    made.querySelectorAll("tbody tr").forEach((row, number) => entries.push({ element: row, text: items[number].text.toLowerCase() }));
    return [made];
  }
  return items.map((item) => {
    const made = fold(item.title, item.make, item.open);
    made.id = item.id;
    entries.push({ element: made, text: `${made.textContent} ${item.text}`.toLowerCase() });
    return made;
  });
}

function search(words) {
  const wanted = words.trim().toLowerCase();
  let found = 0;
  for (const entry of entries) {
    const fits = entry.text.includes(wanted);
    entry.element.classList.toggle("hidden", !fits);
    found += fits;
  }
  document.getElementById("found").textContent = wanted ? `${found} found` : "";
}

// Open what a link leads to: a line of source stands in its file, which is made when it is opened.
function follow() {
  const id = decodeURIComponent(location.hash.slice(1));
  const line = /^line-(\d+)-\d+$/.exec(id);
  const outer = document.getElementById(line ? `file-${line[1]}` : id);
  if (!outer) return;
  outer.classList.remove("hidden");
  if (outer.fill) {
    outer.fill();
    outer.open = true;
  }
  const target = document.getElementById(id) || outer;
  for (const earlier of document.querySelectorAll("#sections .line.chosen[id]")) earlier.classList.remove("chosen");
  if (line) target.classList.add("chosen");
  target.scrollIntoView({ block: line ? "center" : "start" });
}

function foldAll(open, part = document.getElementById("sections")) {
  for (const element of part.querySelectorAll("details")) {
    if (open && !element.open) {
      element.fill();
      foldAll(open, element); // what was just made
    }
    element.open = open;
  }
}

build();
document.getElementById("search").addEventListener("input", (event) => search(event.target.value));
document.getElementById("fold").addEventListener("click", () => foldAll(false));
document.getElementById("unfold").addEventListener("click", () => foldAll(true));
document.addEventListener("click", (event) => { // a second click on the same link leads there again
  const link = event.target.closest && event.target.closest("a[href^='#']");
  if (link && link.getAttribute("href") === location.hash) follow();
});
window.addEventListener("hashchange", follow);
follow();
