// What is shown as an image, for a paper: lines and heat map with their words, in the light theme's colours.
const SVG = "http://www.w3.org/2000/svg", FONT = '"Noto Sans", "DejaVu Sans", system-ui, sans-serif';
const INK = "#1d2125", FAINT = "#5a636c";
const textWidth = (text, size) => {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${size}px ${FONT}`;
  return pen.measureText(text).width;
};
const widest = texts => Math.max(...texts.map(text => textWidth(plain(text), 13)));

// The image as an SVG element; `held` is shown as on the page.
function drawing() {
  const {queries, keys} = view, shown = chosen(), bar = shown.length > 8 ? 3 : 6;
  const cell = 18, [left, right] = [queries, keys].map(pieces => widest(pieces) + 16);
  const heading = [["Source", data.source], ["Target", data.target], ["", data.run]].filter(([, text]) => text);
  const limits = [threshold ? `weights below ${threshold.toFixed(2)} hidden` : "", view.left ? `${EOS} left out, rows renormalised` : ""];
  const title = [description(), ...limits].filter(Boolean).join("; ");
  const top = 44 + 20 * heading.length, linesAt = 20 + left, keysAt = linesAt + GAP + 8, barsWidth = shown.length * (bar + 1) + 4;
  const mapAt = keysAt + barsWidth + right + 24 + left, mapTop = top + right;
  const width = Math.max(mapAt + keys.length * cell + 20, 40 + textWidth(title, 15), ...heading.map(([, text]) => 100 + textWidth(text, 13)));
  const bottom = Math.max(top + Math.max(queries.length, keys.length) * ROW, mapTop + queries.length * cell);
  const legend = Math.ceil(shown.length * 70 / (width - 40)), height = bottom + 24 + 20 * legend;
  const root = document.createElementNS(SVG, "svg");
  const add = (tag, attributes, text) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, typeof value === "number" ? +value.toFixed(2) : value);
    if (text !== undefined) made.textContent = text;
    root.append(made);
    return made;
  };
  const words = (x, y, text, more = {}) => add("text", {x, y, fill: INK, "font-size": 13, "dominant-baseline": "central", ...more}, text);
  for (const [name, value] of Object.entries({xmlns: SVG, width: Math.ceil(width), height: Math.ceil(height), "font-family": FONT})) root.setAttribute(name, value);
  add("rect", {width: "100%", height: "100%", fill: "#ffffff"});
  words(20, 22, title, {"font-size": 15, "font-weight": 600});
  heading.forEach(([name, text], i) => {
    words(20, 46 + 20 * i, name, {fill: FAINT});
    words(name ? 80 : 20, 46 + 20 * i, text, {fill: name ? INK : FAINT});
  });

  for (const line of lines(held)) {
    add("line", {x1: linesAt, y1: top + line.from, x2: linesAt + GAP, y2: top + line.to, stroke: line.colour, "stroke-opacity": line.alpha, "stroke-width": line.width});
  }
  const bold = (side, at) => held && held.side === side && held.at === at ? {"font-weight": 700} : {};
  queries.forEach((text, q) => words(linesAt - 8, top + (q + .5) * ROW, plain(text), {"text-anchor": "end", ...bold("queries", q)}));
  keys.forEach((text, k) => {
    shown.forEach(({number, h}, i) => {
      const w = held && held.side === "queries" ? weight(h, held.at, k) : average(h, k);
      if (w >= threshold) add("rect", {x: keysAt + i * (bar + 1), y: top + k * ROW + 4, width: bar, height: 14, fill: colour(number), "fill-opacity": Math.sqrt(w)});
    });
    words(keysAt + barsWidth, top + (k + .5) * ROW, plain(text), bold("keys", k));
  });

  const rgb = w => `rgb(${[255, 255, 255].map((from, c) => Math.round(from + Math.sqrt(w) * ([8, 48, 107][c] - from))).join()})`;
  queries.forEach((text, q) => {
    words(mapAt - 6, mapTop + (q + .5) * cell, plain(text), {"text-anchor": "end", ...bold("queries", q)});
    keys.forEach((_, k) => {
      const w = mean[q * keys.length + k];
      const fill = masked(q, k) ? "#e2e4e6" : rgb(w < threshold ? 0 : w);
      add("rect", {x: mapAt + k * cell, y: mapTop + q * cell, width: cell, height: cell, fill, "fill-opacity": inFocus(held, q, k) ? 1 : .25});
    });
  });
  keys.forEach((text, k) => words(0, 0, plain(text), {transform: `translate(${mapAt + (k + .5) * cell} ${mapTop - 6}) rotate(-90)`, ...bold("keys", k)}));
  add("rect", {x: mapAt, y: mapTop, width: keys.length * cell, height: queries.length * cell, fill: "none", stroke: "#b8bec4"});
  const perRow = Math.floor((width - 40) / 70);
  shown.forEach(({number}, i) => {
    const x = 20 + 70 * (i % perRow), y = bottom + 20 + 20 * Math.floor(i / perRow);
    add("rect", {x, y: y - 5, width: 10, height: 10, fill: colour(number)});
    words(x + 15, y, `head ${number}`, {fill: FAINT, "font-size": 12});
  });
  return root;
}
function download(url, ending) {
  const numbers = chosen().map(head => head.number).join("-"), link = element("a", "");
  link.href = url;
  link.download = `${data.name}-${kind.name}-layer${layer.number}-head${numbers}.${ending}`;
  link.click();
}
const svgText = () => new XMLSerializer().serializeToString(drawing());
const svgAddress = () => "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgText());
// The image in pixels, two for each of the SVG's, or fewer where a browser could not hold it.
async function pixels() {
  const image = new Image();
  image.src = svgAddress();
  await image.decode();
  const scale = Math.min(2, 16000 / image.width, 16000 / image.height), canvas = document.createElement("canvas");
  Object.assign(canvas, {width: image.width * scale, height: image.height * scale});
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}
byId("svg").onclick = () => download(svgAddress(), "svg");
byId("png").onclick = async () => download((await pixels()).toDataURL("image/png"), "png");
