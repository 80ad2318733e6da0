"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
// Okabe and Ito's colours, which colour-blind readers tell apart; yellow and black darkened and lightened for any page.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#a89b00", "#808080"];
const colour = head => COLOURS[(head - 1) % COLOURS.length];
const ROW = 22, GAP = innerWidth > 760 ? 220 : 110;  // pixels: height of a token, width between the columns
const FAINTEST = .01;  // weights below it get no line
const EOS = "</s>", ENDS = [EOS, "<EOS>_", "<EOS>"];  // the others are of tensor2tensor's vocabularies
const TITLES = {encoder: "Encoder self-attention", decoder: "Decoder self-attention", cross: "Cross-attention"};
const NOTES = {
  encoder: "From each source token to the source tokens it attends to.",
  decoder: "From each target token, at the position that predicts it, to the tokens read so far. The decoder reads the target shifted right by one, <start> first, so no token attends to itself.",
  cross: "From each target token, at the position that predicts it, to the source tokens it attends to.",
};
const NAMES = {encoder: ["source", "source"], decoder: ["target, predicted", "target, read"], cross: ["target, predicted", "source"]};
let kind, layer, heads = new Set(), withoutEos = true, threshold = 0;  // what is chosen
let view, mean;  // what `viewOf` returns for it, and [Q, K], the mean of the chosen heads
let held = null, focus = null;  // {side: "queries" or "keys", at: position}

function element(tag, className, parent, text) {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}
// A piece as text that its neighbours' writing direction leaves alone; `▁`, the space before it, as a faint dot.
function piece(text, parent) {
  const made = element("bdi", /^<\/?\w+>$/.test(text) ? "special" : "", parent);
  text.split(/(▁)/).filter(Boolean).forEach(part => element("span", part === "▁" ? "mark" : "", made, part === "▁" ? "·" : part));
  return made;
}
const plain = text => text.replace(/▁/g, "·");
const spoken = text => text.replace(/▁/g, " ").trim() || "space";
function unpack(text) {
  const bytes = atob(text), values = new Float32Array(bytes.length / 2);
  for (let i = 0; i < values.length; i++) values[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / 65535;
  return values;
}
// The pieces and weights [H, Q, K] of a layer. Without </s>, its row and column are left out, and each row is divided by what
// is left of its sum; `left` [H, Q] are the weights that were left out, or null if </s> is no key. In the decoder, the last
// token is read only where </s> is predicted, and so left out with it.
function viewOf(kind, layer) {
  const ends = pieces => withoutEos && pieces.length > 1 && ENDS.includes(pieces.at(-1)), width = kind.keys.length;
  const queries = ends(kind.queries) ? kind.queries.slice(0, -1) : kind.queries, rescaled = ends(kind.keys);
  const keys = rescaled || kind.name === "decoder" && ends(kind.queries) ? kind.keys.slice(0, -1) : kind.keys;
  const all = unpack(layer.weights), weights = new Float32Array(kind.heads.length * queries.length * keys.length);
  const left = rescaled ? new Float32Array(kind.heads.length * queries.length) : null;
  for (let row = 0; row < kind.heads.length * queries.length; row++) {
    const h = Math.floor(row / queries.length), start = (h * kind.queries.length + row % queries.length) * width;
    const found = all.subarray(start, start + keys.length), sum = rescaled && found.reduce((total, w) => total + w, 0) || 1;
    weights.set(found.map(w => w / sum), row * keys.length);
    if (rescaled) left[row] = all[start + width - 1];
  }
  return {queries, keys, weights, left};
}
const weight = (h, q, k) => view.weights[(h * view.queries.length + q) * view.keys.length + k];
const chosen = () => kind.heads.map((number, h) => ({number, h})).filter(head => heads.has(head.number));
const average = (h, k) => view.queries.reduce((sum, _, q) => sum + weight(h, q, k), 0) / view.queries.length;
const masked = (q, k) => kind.name === "decoder" && k > q;
const digits = value => value.toFixed(3);
// What a token attends to or is attended to by, the greatest weights first.
function greatest(side, at, count) {
  const other = side === "queries" ? "keys" : "queries", width = view.keys.length;
  const found = view[other].map((text, i) => [text, side === "queries" ? mean[at * width + i] : mean[i * width + at]]);
  return found.sort((a, b) => b[1] - a[1]).filter(pair => pair[1] >= Math.max(.005, threshold)).slice(0, count);
}
// The lines that are drawn; `shift` keeps those of several heads side by side.
function* lines(pointed) {
  const shown = chosen();
  for (const [i, {number, h}] of shown.entries()) {
    const shift = Math.max(-7, Math.min(7, (i - (shown.length - 1) / 2) * 1.6));
    for (let q = 0; q < view.queries.length; q++) for (let k = 0; k < view.keys.length; k++) {
      const w = weight(h, q, k);
      if (w >= Math.max(FAINTEST, threshold) && inFocus(pointed, q, k)) {
        yield {from: (q + .5) * ROW + shift, to: (k + .5) * ROW + shift, colour: colour(number),
               alpha: pointed ? Math.sqrt(w) : .75 * w, width: pointed ? 1 + 2.5 * w : 1 + w};
      }
    }
  }
}
// Whether a weight is among those pointed at.
const inFocus = (pointed, q, k) => !pointed || (pointed.side === "queries" ? q : k) === pointed.at;
function description() {
  const numbers = chosen().map(head => head.number);
  const all = numbers.length === kind.heads.length ? "all heads" : `heads ${numbers.join(", ")}`;
  const which = numbers.length === 1 ? `head ${numbers[0]}` : `mean of ${all}`;
  return `${TITLES[kind.name]}, layer ${layer.number} of ${kind.layers.length}, ${which}`;
}

let buttons = [];  // each with a function that says whether it is pressed
function button(parent, label, pressed, act, dot) {
  const made = element("button", "", byId(parent));
  made.type = "button";
  if (dot) element("span", "dot", made).style.setProperty("--dot", dot);
  made.append(label);
  made.onclick = act;
  buttons.push([made, pressed]);
  return made;
}
function controls() {
  for (const id of ["kinds", "layers", "heads"]) byId(id).replaceChildren(byId(id).firstElementChild);
  buttons = [];
  data.kinds.forEach(k => button("kinds", TITLES[k.name], () => k === kind, () => choose({kind: k.name})));
  kind.layers.forEach(l => button("layers", l.number, () => l === layer, () => choose({layer: l.number}))
    .setAttribute("aria-label", `Layer ${l.number}`));
  byId("layers").append(` of ${kind.layers.length}`);
  kind.heads.forEach(head => {
    const toggle = event => {
      const toggled = new Set(heads);
      if (!toggled.delete(head)) toggled.add(head);
      choose({heads: event.detail > 1 || !toggled.size ? new Set([head]) : toggled});
    };
    const made = button("heads", head, () => heads.has(head), toggle, colour(head));
    made.setAttribute("aria-label", `Head ${head}`);
    made.title = `Head ${head}; double-click for it alone`;
  });
  button("heads", "all", () => heads.size === kind.heads.length, () => choose({heads: new Set(kind.heads)}))
    .setAttribute("aria-label", "All heads");
}
// A small heat map of each head of each layer; clicking one chooses it.
function overview() {
  const box = byId("overview"), focused = box.contains(document.activeElement) && document.activeElement.dataset.at;
  box.replaceChildren();
  box.style.gridTemplateColumns = `max-content repeat(${kind.heads.length}, max-content)`;
  element("span", "", box);
  kind.heads.forEach(head => element("span", "", box, head).ariaHidden = "true");
  const {queries, keys} = view, size = Math.max(26, Math.min(48, Math.floor(340 / kind.heads.length)));
  kind.layers.forEach(l => {
    element("span", "", box, l.number).ariaHidden = "true";
    const {weights} = l === layer ? view : viewOf(kind, l), area = queries.length * keys.length;
    kind.heads.forEach((head, h) => {
      const made = button("overview", "", () => l === layer && heads.has(head), () => choose({layer: l.number, heads: new Set([head])}));
      made.setAttribute("aria-label", `Layer ${l.number}, head ${head}`);
      made.title = `Layer ${l.number}, head ${head}`;
      made.dataset.at = `${l.number}.${head}`;
      const canvas = element("canvas", "", made), scale = size / Math.max(queries.length, keys.length);
      canvas.style.width = Math.max(8, keys.length * scale) + "px";
      canvas.style.height = Math.max(8, queries.length * scale) + "px";
      heatMap(canvas, queries.length, keys.length, i => weights[h * area + i]);
    });
  });
  if (focused) box.querySelector(`[data-at="${focused}"]`)?.focus();
}
// Changes what is shown; everything else stays where it can.
function choose(change) {
  const before = kind, number = change.layer || (layer && layer.number);
  kind = data.kinds.find(k => k.name === change.kind) || kind || data.kinds.find(k => k.name === "cross");
  if (change.withoutEos !== undefined) withoutEos = change.withoutEos;
  if (change.threshold !== undefined) threshold = change.threshold;
  if (kind !== before || change.withoutEos !== undefined) held = focus = null;
  layer = kind.layers.find(l => l.number === number) || kind.layers.at(-2) || kind.layers[0];  // as in the paper's Figures 3 to 5
  heads = new Set([...(change.heads || heads)].filter(head => kind.heads.includes(head)));
  if (!heads.size) heads = new Set(kind.heads);
  view = viewOf(kind, layer);
  const size = view.queries.length * view.keys.length, shown = chosen();
  mean = new Float32Array(size);
  for (const {h} of shown) for (let i = 0; i < size; i++) mean[i] += view.weights[h * size + i] / shown.length;
  if (kind !== before || change.withoutEos !== undefined) {
    controls();
    overview();
  }
  buttons.forEach(([made, pressed]) => made.setAttribute("aria-pressed", pressed()));
  document.querySelectorAll("#overview button").forEach(made => made.tabIndex = made.dataset.at === `${layer.number}.${shown[0].number}` ? 0 : -1);
  build();
  paint();
  remember();
}
function remember() {
  const word = held ? `&${held.side}=${held.at + 1}` : "", hidden = threshold ? `&below=${threshold}` : "";
  const address = `#kind=${kind.name}&layer=${layer.number}&heads=${[...heads].join()}${withoutEos ? "" : "&eos=shown"}${hidden}${word}`;
  try { history.replaceState(null, "", address); }
  catch { /* a notebook's frame has no address */ }
}
function build() {
  byId("eos").setAttribute("aria-checked", withoutEos);
  byId("threshold").value = threshold;
  byId("below").textContent = threshold ? threshold.toFixed(2) : "none";
  byId("note").textContent = NOTES[kind.name] + (view.left ? ` Each row without its weight for ${EOS}, divided by what is left of its sum.` : "");
  ["queries", "keys"].forEach((side, column) => {
    byId(side + "name").textContent = NAMES[kind.name][column];
    byId(side).replaceChildren();
    view[side].forEach((text, at) => {
      const token = element("div", "token", byId(side)), found = greatest(side, at, 3).map(([other, w]) => `${spoken(other)} ${w.toFixed(2)}`);
      token.role = "option";
      token.ariaSelected = "false";
      token.ariaLabel = `${spoken(text)}, ${side === "queries" ? "attends to" : "is attended to by"} ${found.join(", ") || "none above the threshold"}`;
      token.dataset.at = at;
      token.tabIndex = at ? -1 : 0;
      if (side === "keys") chosen().forEach(({number}, i, all) => {
        const bars = i ? token.firstChild : element("span", "bars", token);
        element("i", "", bars).style.background = colour(number);
        if (all.length > 8) bars.lastChild.style.width = "3px";
      });
      piece(text, token);
      if (side === "keys") element("span", "value", token);
    });
  });
  byId("maptitle").textContent = byId("status").textContent = description();
  byId("cells").ariaLabel = `Heat map: ${description()}. The words' names in the lists say the weights.`;
  byId("strokes").ariaLabel = `Lines from each word to what it attends to: ${description()}`;
  byId("legend").textContent = "weight; colour by its square root" + (kind.name === "decoder" ? "; grey: not yet read" : "");
  const cell = Math.max(11, Math.min(24, Math.floor(640 / view.keys.length)));
  for (const [id, side] of [["rows", "queries"], ["columns", "keys"]]) {
    byId(id).style.font = `${Math.min(13, cell - 1)}px/${cell}px system-ui, "Noto Sans", "DejaVu Sans", sans-serif`;
    byId(id).replaceChildren();
    view[side].forEach(text => piece(text, element("div", "", byId(id))).parentNode.style[id === "rows" ? "height" : "width"] = cell + "px");
  }
  byId("cells").style.width = view.keys.length * cell + "px";
  byId("cells").style.height = view.queries.length * cell + "px";
}
function paint() {
  paintTokens();
  paintLines();
  heatMap(byId("cells"), view.queries.length, view.keys.length, i => mean[i] < threshold ? 0 : mean[i], focus);
}
function paintTokens() {
  const asked = focus && focus.side === "queries";
  for (const side of ["queries", "keys"]) [...byId(side).children].forEach((token, at) => {
    const own = focus && focus.side === side;
    token.classList.toggle("on", !!own && focus.at === at);
    token.classList.toggle("off", !!own && focus.at !== at);
    token.ariaSelected = String(!!held && held.side === side && held.at === at);
    if (side === "queries") return;
    const value = asked ? mean[focus.at * view.keys.length + at] : 0;
    token.querySelector(".value").textContent = asked && value >= Math.max(.005, threshold) ? value.toFixed(2) : "";
    const bars = token.querySelectorAll(".bars i");
    chosen().forEach(({h}, i) => {
      const w = asked ? weight(h, focus.at, at) : average(h, at);
      bars[i].style.opacity = w < threshold ? 0 : Math.sqrt(w);
    });
  });
  [...byId("rows").children].forEach((row, q) => {
    row.classList.toggle("on", !!asked && focus.at === q);
    row.classList.toggle("off", !!asked && focus.at !== q);
  });
  [...byId("columns").children].forEach((column, k) => column.classList.toggle("on", !!focus && focus.side === "keys" && focus.at === k));
}
function paintLines() {
  const canvas = byId("strokes"), ratio = window.devicePixelRatio || 1;
  const height = Math.max(view.queries.length, view.keys.length) * ROW;
  Object.assign(canvas, {width: GAP * ratio, height: height * ratio});
  Object.assign(canvas.style, {width: GAP + "px", height: height + "px", flex: "none", marginTop: ROW + "px"});
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  for (const line of lines(focus)) {
    Object.assign(pen, {strokeStyle: line.colour, globalAlpha: line.alpha, lineWidth: line.width});
    pen.beginPath();
    pen.moveTo(2, line.from);
    pen.lineTo(GAP - 2, line.to);
    pen.stroke();
  }
}
// The colour of a weight, in the page's theme.
function shades() {
  const style = getComputedStyle(document.documentElement);
  const [strong, weak, hidden] = ["--strong", "--weak", "--hidden"].map(name => style.getPropertyValue(name).split(",").map(Number));
  return (w, q, k) => masked(q, k) ? hidden : weak.map((from, c) => from + Math.sqrt(w) * (strong[c] - from));
}
// Paints a canvas a pixel for each weight; those not pointed at are faded.
function heatMap(canvas, height, width, value, pointed = null) {
  Object.assign(canvas, {width, height});
  const pen = canvas.getContext("2d"), image = pen.createImageData(width, height), shade = shades();
  for (let i = 0; i < width * height; i++) {
    const q = Math.floor(i / width), k = i % width;
    image.data.set([...shade(value(i), q, k), inFocus(pointed, q, k) ? 255 : 50], 4 * i);
  }
  pen.putImageData(image, 0, 0);
}
