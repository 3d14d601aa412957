// The time of each stage, nested: one row a depth, idle time between compilations left out.

const PHASES = {
  frame: "#c9d3e3", trace: "#8fc5ff", backend: "#dfe5ee", joint: "#b9a7ff", decompose: "#f5b3e0", lower: "#ffd28a",
  schedule: "#ffb480", kernels: "#f59a9a", compile: "#e58585", cache: "#a8dcb5", guards: "#9fe0dc",
};
const ROW = 20;

function timeline(spans) {
  const { at, total } = busyTime(spans);
  const depths = depthsOf(spans);
  const inner = el("div", { class: "inner" });
  inner.style.height = `${(Math.max(0, ...depths.values()) + 1) * ROW + 4}px`;
  for (const span of spans) {
    const start = at(span.start), length = at(span.end) - start;
    const bar = el("button", {
      type: "button", class: "bar", "data-frame": span.frame,
      title: `${span.kind} of ${frameName(span.frame)}: ${milliseconds(span.end - span.start)}${span.raised ? `, ended by ${span.raised}` : ""}`,
      onclick: () => (location.hash = `frame-${span.frame}`),
    }, length / total > 0.03 ? `${span.kind} ${milliseconds(span.end - span.start)}` : "");
    bar.style.cssText = `left:${(100 * start) / total}%;width:max(1px,${(100 * length) / total}%);` +
      `top:${depths.get(span.number) * ROW + 2}px;background:${PHASES[span.kind] || "#ccc"}`;
    inner.append(bar);
  }
  const scale = el("input", { type: "range", min: 1, max: 40, value: 1, "aria-label": "width of the timeline" });
  scale.addEventListener("input", () => (inner.style.width = `${100 * scale.value}%`));
  return [el("div", { class: "tools" }, "wider", scale), el("div", { class: "timeline" }, inner)];
}

// What a graph holds after each of its steps, from left to right; the highest line is the peak.
function memoryCurve(entry) {
  const width = 900, height = 120, count = entry.steps.length, most = Math.max(entry.peak, 1);
  const namespace = "http://www.w3.org/2000/svg";
  const made = (tag, attributes) => {
    const element = document.createElementNS(namespace, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const picture = made("svg", { viewBox: `0 0 ${width} ${height + 16}`, class: "curve", role: "img", "aria-label": "bytes held after each step" });
  const step = width / Math.max(count, 1);
  entry.steps.forEach(([label, bytes], index) => {
    const tall = (height * bytes) / most;
    const bar = made("rect", { x: index * step, y: height - tall, width: Math.max(step - 0.5, 0.5), height: tall });
    const words = made("title", {});
    words.textContent = `${label}: ${bytes.toLocaleString("en")} bytes`;
    bar.append(words);
    picture.append(bar);
  });
  const scale = made("text", { x: 0, y: height + 13 });
  scale.textContent = `${count} steps; full height: ${most.toLocaleString("en")} bytes`;
  picture.append(scale);
  return picture;
}

// Seconds of the record to time in which something was compiled.
function busyTime(spans) {
  const outer = spans.filter((span) => span.parent === null).sort((a, b) => a.start - b.start);
  const stretches = [];
  for (const span of outer) {
    const last = stretches[stretches.length - 1];
    if (last && span.start <= last.end) last.end = Math.max(last.end, span.end);
    else stretches.push({ start: span.start, end: span.end });
  }
  let total = 0;
  for (const stretch of stretches) {
    stretch.before = total;
    total += stretch.end - stretch.start;
  }
  const at = (time) => {
    const stretch = stretches.findLast((one) => one.start <= time);
    return stretch ? stretch.before + Math.min(time, stretch.end) - stretch.start : 0;
  };
  return { at, total: total || 1 };
}

function depthsOf(spans) {
  const parents = new Map(spans.map((span) => [span.number, span.parent]));
  const depths = new Map();
  const depth = (number) => {
    if (!depths.has(number)) {
      const parent = parents.get(number);
      depths.set(number, parent === null || !parents.has(parent) ? 0 : depth(parent) + 1);
    }
    return depths.get(number);
  };
  spans.forEach((span) => depth(span.number));
  return depths;
}

// The time of each kind of stage without that of the stages inside of it.
function phases(spans) {
  const own = new Map(spans.map((span) => [span.number, span.end - span.start]));
  for (const span of spans) {
    if (own.has(span.parent)) own.set(span.parent, own.get(span.parent) - (span.end - span.start));
  }
  const sums = new Map();
  for (const span of spans) sums.set(span.kind, (sums.get(span.kind) || 0) + own.get(span.number));
  const rows = [...sums].sort((a, b) => b[1] - a[1]).map(([kind, time]) => [kind, time / 1000]);
  return table(["stage", "ms"], rows);
}
