// A layered layout: each node below its inputs, near the middle of them. Linear in nodes and edges but for sorting.

const WIDTH = 168, HEIGHT = 38, BESIDE = 18, BELOW = 46, BETWEEN = 120;
const LONG = 60; // layers from which on there may be columns

// nodes: [name, label, spec, inputs, where]. Returns {x, y} of each node's upper left corner, and the whole's size.
function layered(nodes) {
  const ranks = ranksOf(nodes);
  const layers = [];
  nodes.forEach((_, number) => (layers[ranks[number]] ||= []).push(number));
  const x = new Float64Array(nodes.length);
  const users = nodes.map(() => []);
  nodes.forEach((node, number) => node[3].forEach((given) => users[given].push(number)));
  for (const layer of layers) spread(layer, x, (number) => nodes[number][3]);
  for (const layer of [...layers].reverse()) spread(layer, x, (number) => users[number]);
  for (const layer of layers) spread(layer, x, (number) => nodes[number][3]);
  return inColumns(layers, x);
}

// Layers one below the other; a graph that is much longer than it is wide goes on in a further column, as text does.
function inColumns(layers, x) {
  const bounds = layers.map((layer) => [x[layer[0]], x[layer[layer.length - 1]] + WIDTH]);
  const width = bounds.reduce((most, [left, right]) => Math.max(most, right - left), 0);
  const columns = layers.length < LONG ? 1 : Math.max(1, Math.floor(Math.sqrt((2 * layers.length * (HEIGHT + BELOW)) / width)));
  const rows = Math.ceil(layers.length / columns);
  const places = [];
  let begin = 0;
  for (let first = 0; first < layers.length; first += rows) {
    const part = layers.slice(first, first + rows);
    const sides = bounds.slice(first, first + rows);
    const left = Math.min(...sides.map(([side]) => side)), right = Math.max(...sides.map(([, side]) => side));
    part.forEach((layer, row) => layer.forEach((number) => {
      places[number] = { x: begin + x[number] - left, y: row * (HEIGHT + BELOW) };
    }));
    begin += right - left + BETWEEN;
  }
  return { places, width: begin - BETWEEN, height: rows * (HEIGHT + BELOW) - BELOW };
}

// The layer of each node: one below the lowest of its inputs. What has no inputs stands right above its first user.
function ranksOf(nodes) {
  const ranks = new Int32Array(nodes.length);
  const first = new Int32Array(nodes.length).fill(-1);
  nodes.forEach((node, number) => {
    if (node[3].length) ranks[number] = 1 + node[3].reduce((most, given) => Math.max(most, ranks[given]), 0);
    for (const given of node[3]) {
      if (first[given] < 0 || ranks[number] < first[given]) first[given] = ranks[number];
    }
  });
  nodes.forEach((node, number) => {
    if (!node[3].length && first[number] > 0) ranks[number] = first[number] - 1;
  });
  return ranks;
}

// Put the nodes of a layer next to each other, each as near as can be to the middle of its neighbours.
function spread(layer, x, neighbours) {
  const wanted = new Map(layer.map((number) => {
    const near = neighbours(number);
    return [number, near.length ? near.reduce((sum, other) => sum + x[other], 0) / near.length : x[number]];
  }));
  layer.sort((a, b) => wanted.get(a) - wanted.get(b) || a - b);
  let free = -Infinity, shift = 0;
  for (const number of layer) {
    x[number] = Math.max(free, wanted.get(number));
    shift += wanted.get(number) - x[number];
    free = x[number] + WIDTH + BESIDE;
  }
  for (const number of layer) x[number] += shift / layer.length;
}
