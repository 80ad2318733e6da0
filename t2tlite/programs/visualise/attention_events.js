// What the page does when it is pointed at, clicked and typed at.

// The tooltip: a heading of pieces and words, then rows of a piece or a head with its weight.
function tip(event, heading, rows) {
  const box = byId("tip"), table = element("table", "");
  box.replaceChildren();
  heading.forEach(part => part.piece === undefined ? box.append(part) : piece(part.piece, box));
  rows.forEach(([name, value, head]) => {
    const row = element("tr", "", table), cell = element("td", "", row);
    if (head) cell.style.color = colour(head);
    if (name.piece === undefined) cell.textContent = name; else piece(name.piece, cell);
    element("td", "", row, value);
  });
  box.append(table);
  box.style.display = "block";
  box.style.left = Math.max(4, Math.min(event.clientX + 16, innerWidth - box.offsetWidth - 8)) + "px";
  box.style.top = Math.max(4, Math.min(event.clientY + 16, innerHeight - box.offsetHeight - 8)) + "px";
}
const hideTip = () => byId("tip").style.display = "none";
function tokenTip(event, side, at) {
  const rows = greatest(side, at, 5).map(([text, w]) => [{piece: text}, digits(w)]);
  if (side === "queries" && view.left) {
    const shown = chosen(), left = shown.reduce((sum, {h}) => sum + view.left[h * view.queries.length + at], 0) / shown.length;
    rows.push([`left out: ${EOS}`, digits(left)]);
  }
  tip(event, [{piece: view[side][at]}, side === "queries" ? " attends to" : " is attended to by"], rows);
}
function cellTip(event, q, k) {
  const rows = masked(q, k) ? [["not yet read", ""]] : chosen().map(({number, h}) => [`head ${number}`, digits(weight(h, q, k)), number]);
  if (rows.length > 1) rows.unshift(["mean", digits(mean[q * view.keys.length + k])]);
  tip(event, [{piece: view.queries[q]}, " → ", {piece: view.keys[k]}], rows);
}
const point = at => { focus = at || held; paint(); };
for (const side of ["queries", "keys"]) {
  const column = byId(side), at = event => event.target.closest(".token");
  const enter = event => {
    const token = at(event);
    if (!token) return;
    point({side, at: +token.dataset.at});
    const box = token.getBoundingClientRect();
    tokenTip(event.clientX ? event : {clientX: box.right, clientY: box.bottom}, side, +token.dataset.at);
  };
  const leave = () => { hideTip(); point(null); };
  const hold = event => {
    if (!at(event)) return;
    const position = +at(event).dataset.at;
    held = held && held.side === side && held.at === position ? null : {side, at: position};
    point(held);
    remember();
  };
  column.addEventListener("mouseover", enter);
  column.addEventListener("focusin", enter);
  column.addEventListener("mouseleave", leave);
  column.addEventListener("focusout", leave);
  column.addEventListener("click", hold);
  column.addEventListener("keydown", event => {
    const tokens = [...column.children], place = tokens.indexOf(at(event)), last = tokens.length - 1;
    const goal = {ArrowUp: Math.max(0, place - 1), ArrowDown: Math.min(last, place + 1), Home: 0, End: last}[event.key];
    if (event.key === "Enter" || event.key === " ") hold(event);
    else if (goal === undefined) return;
    else {
      tokens.forEach((token, i) => token.tabIndex = i === goal ? 0 : -1);
      tokens[goal].focus();
    }
    event.preventDefault();
    event.stopPropagation();
  });
}
byId("cells").addEventListener("mousemove", event => {
  const box = byId("cells").getBoundingClientRect();
  const q = Math.floor((event.clientY - box.top) / box.height * view.queries.length);
  const k = Math.floor((event.clientX - box.left) / box.width * view.keys.length);
  if (q < 0 || k < 0 || q >= view.queries.length || k >= view.keys.length) return;
  if (!focus || focus.side !== "queries" || focus.at !== q) point({side: "queries", at: q});
  cellTip(event, q, k);
});
byId("cells").addEventListener("mouseleave", () => { hideTip(); point(null); });
document.addEventListener("keydown", event => {
  if (event.key === "Escape") { held = null; hideTip(); point(null); remember(); }
  if (event.target.tagName === "INPUT" || event.altKey || event.ctrlKey || event.metaKey) return;
  const step = {ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (!step) return;
  event.preventDefault();
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    const next = kind.layers[kind.layers.indexOf(layer) + step];
    if (next) choose({layer: next.number});
  } else {
    const shown = chosen(), alone = shown.length === 1 ? shown[0].h : step > 0 ? -1 : kind.heads.length;
    const next = kind.heads[alone + step];
    if (next) choose({heads: new Set([next])});
  }
  if (byId("overview").contains(document.activeElement)) document.querySelector("#overview [tabindex='0']").focus();
});
const wide = matchMedia("(min-width: 761px)");  // where there is room, the controls are not folded
wide.onchange = () => document.querySelector("details").open = wide.matches;
wide.onchange();
byId("eos").onclick = () => choose({withoutEos: !withoutEos});
byId("threshold").oninput = event => choose({threshold: +event.target.value});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { overview(); choose({}); });

byId("run").textContent = data.run;
byId("source").textContent = data.source;
byId("target").textContent = data.target;
document.title = ["Attention", data.source.slice(0, 60), data.run].filter(Boolean).join(" · ");
const asked = new URLSearchParams(location.hash.slice(1));  // what a link to this page asks for
choose({kind: asked.get("kind"), layer: +asked.get("layer"), heads: new Set((asked.get("heads") || "").split(",").map(Number)),
        withoutEos: asked.get("eos") !== "shown", threshold: Math.min(.5, Math.max(0, +asked.get("below") || 0))});
for (const side of ["queries", "keys"]) {
  const at = +asked.get(side) - 1;
  if (at >= 0 && at < view[side].length) held = {side, at};
}
point(null);
remember();
