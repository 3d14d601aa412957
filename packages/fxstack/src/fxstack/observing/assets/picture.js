// A graph as a picture that can be moved and zoomed. Only what is in view is drawn; from afar nodes are one path.

const SVG = "http://www.w3.org/2000/svg";
const MOST = 350; // nodes in view that are drawn with text
const CROWD = 1000; // edges in view that are drawn strongly

class Picture {
  constructor(graph, onChoose) {
    this.nodes = graph.nodes;
    this.onChoose = onChoose;
    this.layout = layered(graph.nodes);
    this.chosen = null;
    this.view = null; // x and y of the graph at the upper left corner, pixels for each unit
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("aria-label", `graph of ${graph.nodes.length} nodes`);
    this.scene = this.svg.appendChild(document.createElementNS(SVG, "g"));
    this.box = el("div", { class: "picture", tabindex: 0 }, this.svg);
    this.element = el("div", {},
      el("div", { class: "tools" },
        el("button", { type: "button", class: "zoom-in", onclick: () => this.zoom(1.5) }, "+"),
        el("button", { type: "button", class: "zoom-out", onclick: () => this.zoom(1 / 1.5) }, "−"),
        el("button", { type: "button", class: "fit", onclick: () => this.fit() }, "whole graph"),
        el("span", { class: "soft" }, `${graph.nodes.length} nodes; drag to move, wheel to zoom, click a node`)),
      this.box);
    this.listen();
    new ResizeObserver(() => this.view ? this.draw() : this.start()).observe(this.box);
  }

  size() {
    return [this.box.clientWidth || 800, this.box.clientHeight || 460];
  }

  start() {
    const [width, height] = this.size();
    const first = this.layout.places[this.nodes.findIndex((node) => node[3].length)];
    this.fit();
    if (this.view.scale > 0.35 || !first) return;
    this.view = { x: first.x + WIDTH / 2 - width / 2, y: first.y - height / 4, scale: 1 }; // its beginning, to be read
    this.draw();
  }

  fit() {
    const [width, height] = this.size();
    const scale = Math.min(1, width / (this.layout.width + 40), height / (this.layout.height + 40));
    this.view = { x: this.layout.width / 2 - width / scale / 2, y: this.layout.height / 2 - height / scale / 2, scale };
    this.draw();
  }

  zoom(factor, at) {
    const [width, height] = this.size();
    const [px, py] = at || [width / 2, height / 2];
    const scale = Math.min(4, Math.max(0.002, this.view.scale * factor));
    this.view.x += px / this.view.scale - px / scale;
    this.view.y += py / this.view.scale - py / scale;
    this.view.scale = scale;
    this.draw();
  }

  choose(number, move) {
    this.chosen = number;
    if (move && this.view) {
      const [width, height] = this.size(), { x, y } = this.layout.places[number];
      const scale = Math.max(this.view.scale, 0.8);
      this.view = { x: x + WIDTH / 2 - width / scale / 2, y: y + HEIGHT / 2 - height / scale / 2, scale };
    }
    if (this.view) this.draw();
  }

  listen() {
    let held = null, moved = false;
    const at = (event) => {
      const bounds = this.box.getBoundingClientRect();
      return [event.clientX - bounds.left, event.clientY - bounds.top];
    };
    this.box.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), at(event));
    }, { passive: false });
    this.box.addEventListener("pointerdown", (event) => {
      held = at(event);
      moved = false;
      this.box.setPointerCapture(event.pointerId);
    });
    this.box.addEventListener("pointermove", (event) => {
      if (!held) return;
      const [x, y] = at(event);
      moved ||= Math.hypot(x - held[0], y - held[1]) > 3;
      this.view.x -= (x - held[0]) / this.view.scale;
      this.view.y -= (y - held[1]) / this.view.scale;
      held = [x, y];
      this.draw();
    });
    this.box.addEventListener("pointerup", (event) => {
      held = null;
      if (!moved) this.pick(...at(event));
    });
  }

  pick(px, py) {
    const x = this.view.x + px / this.view.scale, y = this.view.y + py / this.view.scale;
    const found = this.layout.places.findIndex((place) =>
      x >= place.x && x <= place.x + WIDTH && y >= place.y && y <= place.y + HEIGHT);
    if (found < 0) return;
    this.choose(found, false);
    this.onChoose(found);
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  paint() {
    const { x, y, scale } = this.view, [width, height] = this.size();
    const [right, bottom] = [x + width / scale, y + height / scale];
    const places = this.layout.places;
    const inView = [];
    places.forEach((place, number) => {
      if (place.x < right && place.x + WIDTH > x && place.y < bottom && place.y + HEIGHT > y) inView.push(number);
    });
    const near = inView.length <= MOST && scale > 0.25;
    const parts = [this.edges(x, y, right, bottom, scale)];
    if (near) parts.push(...inView.map((number) => this.node(number)));
    else parts.push(...this.far(inView));
    if (this.chosen !== null) parts.push(this.rectangle(this.chosen, "chosen"));
    this.scene.setAttribute("transform", `scale(${scale}) translate(${-x} ${-y})`);
    this.scene.replaceChildren(...parts);
  }

  edges(x, y, right, bottom, scale) {
    const steps = [];
    this.nodes.forEach((node, number) => {
      const to = this.layout.places[number];
      for (const given of node[3]) {
        const from = this.layout.places[given];
        const [x1, y1, x2, y2] = [from.x + WIDTH / 2, from.y + HEIGHT, to.x + WIDTH / 2, to.y];
        if (Math.max(y1, y2) < y || Math.min(y1, y2) > bottom) continue;
        if (Math.max(x1, x2) < x || Math.min(x1, x2) > right) continue;
        const bend = Math.min(40, Math.abs(y2 - y1) / 2);
        steps.push(`M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`);
      }
    });
    const opacity = steps.length > CROWD ? 0.12 : 0.55; // many edges would hide the nodes
    return shape("path", { class: "edges", d: steps.join(""), "stroke-width": Math.max(1, 0.6 / scale), "stroke-opacity": opacity });
  }

  kind(number) {
    const label = this.nodes[number][1];
    return label === "input" ? " given" : label === "return" ? " result" : "";
  }

  rectangle(number, name) {
    const { x, y } = this.layout.places[number];
    return shape("rect", { class: name, x, y, width: WIDTH, height: HEIGHT, rx: 4 });
  }

  node(number) {
    const [name, label, spec] = this.nodes[number], { x, y } = this.layout.places[number];
    const group = shape("g", { "data-node": number });
    const title = shape("title", {});
    title.textContent = `%${name} = ${label}  ${spec}`;
    group.append(title, this.rectangle(number, `node${this.kind(number)}`),
      words(x + 7, y + 16, label === "input" ? name : label, 22), words(x + 7, y + 31, spec, 26, "spec"));
    return group;
  }

  far(numbers) {
    const steps = { "": [], " given": [], " result": [] };
    for (const number of numbers) {
      const { x, y } = this.layout.places[number];
      steps[this.kind(number)].push(`M${x} ${y}h${WIDTH}v${HEIGHT}h${-WIDTH}z`);
    }
    return Object.entries(steps).map(([kind, paths]) => shape("path", { class: `far${kind}`, d: paths.join("") }));
  }
}

function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function words(x, y, text, most, name) {
  const made = shape("text", name ? { x, y, class: name } : { x, y });
  made.textContent = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return made;
}
