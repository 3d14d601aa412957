// What the page says of each part of the record. An entry is {title, text, make, id}: ``text`` is what is searched.

function frameOf(number) {
  return record.frames.find((frame) => frame.frame === number);
}

function frameName(number) {
  const frame = frameOf(number);
  if (!frame) return "no frame";
  const name = frame.where ? frame.where[2] : "a function";
  return frame.earlier ? `${name}, version ${frame.earlier + 1}` : name;
}

function frameLink(number) {
  return frameOf(number) ? el("a", { href: `#frame-${number}` }, frameName(number)) : el("span", {}, "no frame");
}

function wordsOf(value) {
  return typeof value === "object" && value !== null ? Object.values(value).map(wordsOf).join(" ") : String(value);
}

function own(name, frame) {
  return record[name].filter((entry) => entry.frame === frame.frame);
}

function frameEntry(frame) {
  const spans = own("spans", frame);
  const whole = spans.find((span) => span.kind === "frame");
  const title = [frameName(frame.frame), el("span", { class: "soft" }, ` ${frame.outcome}, ${whole ? milliseconds(whole.end - whole.start) : ""}`)];
  const make = () => [
    el("p", {}, place(frame.where)),
    ...own("recompiles", frame).flatMap((entry) => entry.causes.map(causeLine)),
    table(["part", "number"], [
      ["graphs", own("graphs", frame).length], ["breaks", own("breaks", frame).length],
      ["kernels run", own("launches", frame).length], ["library calls", own("calls", frame).length],
      ["guards", own("guards", frame).reduce((sum, entry) => sum + entry.count, 0)]]),
    phases(spans),
  ];
  return { title, make, id: `frame-${frame.frame}`, text: wordsOf([frame.where, frame.outcome]) };
}

function graphEntry(graph, number) {
  const title = [`${graph.role}, ${graph.dialect} `, el("span", { class: "soft" }, `${graph.nodes.length} nodes of ${frameName(graph.frame)}`)];
  const make = () => {
    const numbers = new Map(graph.nodes.map((node, index) => [node[0], index]));
    const chosen = el("div", { class: "chosen-node code" });
    const lines = new Map();
    const show = (index) => {
      const [name, label, spec, , where] = graph.nodes[index];
      chosen.replaceChildren(`%${name}: ${spec} = ${label}  `, where ? place(where) : "");
      for (const line of text.querySelectorAll(".chosen")) line.classList.remove("chosen");
      const line = lines.get(index);
      if (line) {
        line.classList.add("chosen");
        text.scrollTop += line.getBoundingClientRect().top - text.getBoundingClientRect().top - text.clientHeight / 2;
      }
    };
    const picture = new Picture(graph, show);
    const text = el("pre", { class: "graph-text" }, graph.text.split("\n").map((line) => {
      const found = /^ {2}%(\w+):/.exec(line);
      const index = found ? numbers.get(found[1]) : undefined;
      if (index === undefined) return el("span", { class: "line" }, linked(line));
      const name = el("a", { href: "#", class: "to-node", onclick: (event) => { event.preventDefault(); picture.choose(index, true); show(index); } }, `%${found[1]}`);
      const made = el("span", { class: "line", "data-node": index }, "  ", name, linked(line.slice(3 + found[1].length)));
      lines.set(index, made);
      return made;
    }));
    return [el("p", {}, "of ", frameLink(graph.frame)), picture.element, chosen, text];
  };
  return { title, make, id: `graph-${number}`, text: graph.text };
}

// The breaks of one kind at one line together, in the order of the first.
function breakGroups() {
  const groups = new Map();
  for (const stop of record.breaks) {
    const key = JSON.stringify([stop.code, stop.what, stop.where]);
    groups.set(key, [...(groups.get(key) || []), stop]);
  }
  return [...groups.values()];
}

function breakEntry(stops, number) {
  const stop = stops[0];
  const times = stops.length > 1 ? ` ${stops.length} times` : "";
  const title = [el("span", { class: "bad" }, stop.code), times, ` ${stop.what}`];
  const make = () => [
    el("p", {}, "at ", place(stop.where)), el("p", {}, "why: ", stop.why), el("p", {}, "to do: ", stop.advice),
    ...stops.map(({ resumed, frame }) =>
      el("p", { class: "soft" }, resumed ? "What follows is captured anew." : "The function runs uncaptured.", " In ", frameLink(frame))),
  ];
  return { title, make, id: `break-${number}`, text: wordsOf(stops), open: true };
}

function causeLine(cause) {
  const values = cause.old === null ? cause.reason : ["was ", el("code", { class: "old" }, cause.old), ", is ", el("code", { class: "new" }, cause.new)];
  return el("p", {}, el("code", {}, cause.expression), ": ", values, cause.where ? [" — relied on at ", place(cause.where)] : "");
}

function recompileEntry(entry, number) {
  const make = () => [...entry.causes.map(causeLine), el("p", { class: "soft" }, "made ", frameLink(entry.frame))];
  return { title: [frameName(entry.frame)], make, id: `recompile-${number}`, text: wordsOf(entry), open: true };
}

function guardTree(node) {
  const cost = node.nanoseconds === undefined ? "" : ` ${node.count} guards, ${node.nanoseconds.toLocaleString("en")} ns alone`;
  const lines = node.guards.map(([text, where]) => el("div", { class: "code" }, text, where ? [" — ", place(where)] : ""));
  const title = [el("code", {}, node.reads), el("span", { class: "soft" }, cost)];
  return fold(title, () => [...lines, ...node.children.map(guardTree)], node.nanoseconds === undefined);
}

function guardEntry(guards, number) {
  const title = [frameName(guards.frame), el("span", { class: "soft" }, ` ${guards.count} guards, all checked in ${guards.nanoseconds.toLocaleString("en")} ns`)];
  const make = () => [
    ...[...guards.roots].sort((a, b) => b.nanoseconds - a.nanoseconds).map(guardTree),
    ...guards.relations.map(([text, where]) => el("div", { class: "code" }, text, where ? [" — ", place(where)] : "")),
  ];
  return { title, make, id: `guards-${number}`, text: wordsOf([guards.roots, guards.relations]) };
}

function kernelEntries() {
  const runs = new Map();
  for (const launch of record.launches) runs.set(launch.kernel, [...(runs.get(launch.kernel) || []), launch]);
  return [...runs].map(([name, launches]) => {
    const bytes = launches.reduce((sum, one) => sum + (one.read || 0) + (one.written || 0), 0);
    const text = record.kernels[name] || "";
    const make = () => [
      table(["in", "role", "over", "bytes read", "bytes written"], launches.map((one) =>
        [frameLink(one.frame), one.role, one.loops || "one point", one.read === null ? "unknown" : one.read, one.written === null ? "unknown" : one.written])),
      el("div", { class: "code" }, launches[0].origins.map((origin) => el("div", {}, linked(origin)))),
      text ? el("pre", {}, text.split("\n").map((line) => el("span", { class: "line" }, linked(line)))) : el("p", { class: "soft" }, "its text was not written in this process"),
    ];
    const title = [name, el("span", { class: "soft" }, ` run ${launches.length} times, ${bytes.toLocaleString("en")} bytes`)];
    return { title, make, bytes, id: `kernel-${name}`, text: `${wordsOf(launches)} ${text}` };
  }).sort((a, b) => b.bytes - a.bytes);
}

// A kernel or library call by the time that it took. "of a copy": the bytes that it moves in its shortest time, as a
// share of what a large copy on that device moves; what lies in caches is faster than that.
function stepRow(step) {
  const whole = record.steps.reduce((sum, one) => sum + one.total, 0);
  const rate = step.bytes && step.least ? step.bytes / (step.least * 1e-6) : null;
  const kernel = /^(kernel_\w+) (.*)$/.exec(step.label);
  const known = kernel && record.launches.some((launch) => launch.kernel === kernel[1]);
  const name = known ? [el("a", { href: `#kernel-${kernel[1]}` }, kernel[1]), ` ${kernel[2]}`] : step.label;
  const copied = record.copy_bandwidth[step.device];
  const share = rate === null || !copied ? "" : 100 * rate / copied;
  const row = [el("span", {}, name), step.device, step.calls, step.least, step.total / 1000, 100 * step.total / whole,
    step.bytes === null ? "" : step.bytes, rate === null ? "" : rate / 1e9, share];
  return { row, text: step.label };
}

function memoryEntry(entry, number) {
  const title = [`${entry.role} `, el("span", { class: "soft" }, `${entry.peak.toLocaleString("en")} bytes at most, in ${frameName(entry.frame)}`)];
  const make = () => [
    entry.unknown ? el("p", {}, `${entry.unknown} tensors have sizes that only a run tells, and are left out`) : null,
    memoryCurve(entry),
    table(["step", "bytes held"], entry.steps),
  ].filter(Boolean);
  return { title, make, id: `memory-${number}`, text: wordsOf(entry) };
}

function callEntries() {
  const counts = new Map();
  for (const call of record.calls) counts.set(call.operator, (counts.get(call.operator) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name, times]) => ({ row: [name, times], text: name }));
}

function sourceEntry(file) {
  const broken = new Set(record.breaks.filter((stop) => stop.where && stop.where[0] === file).map((stop) => String(stop.where[1])));
  const make = () => {
    let before = null;
    const lines = Object.entries(record.sources[file]).flatMap(([number, text]) => {
      const gap = before !== null && Number(number) > before + 1 ? [el("span", { class: "line soft" }, "   …")] : [];
      before = Number(number);
      const name = broken.has(number) ? "line broken" : "line";
      return [...gap, el("span", { class: name, id: lineId(file, number) }, el("span", { class: "number" }, number), text)];
    });
    return el("pre", {}, lines);
  };
  return { title: [file], make, id: `file-${files.indexOf(file)}`, text: `${file} ${Object.values(record.sources[file]).join(" ")}` };
}

function leftEntry(entry, number) {
  const make = () => [el("p", {}, place(entry.where)), el("pre", {}, linked(entry.reason))];
  return { title: [entry.where ? entry.where[2] : "a function"], make, id: `left-${number}`, text: wordsOf(entry), open: true };
}

function cacheRow(entry) {
  const state = entry.key === null ? "cannot be kept" : entry.hit ? "found" : "not there";
  return { row: [entry.what, el("span", { class: entry.hit ? "good" : "" }, state), entry.key || "", frameLink(entry.frame)], text: `${entry.what} ${entry.key} ${state}` };
}
