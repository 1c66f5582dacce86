"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 360, HEIGHT = 256, LEFT = 60, RIGHT = 12, TOP = 6, BOTTOM = 40;
const state = { off: new Set(), curve: "cumulative", axis: "log", statistic: "final", against: data.against, spread: true };

// ---------- small helpers

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function shape(name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}

/** `value` with the decimals that give `like` three significant digits. */
function format(value, like = value) {
  if (value === null) return "";
  if (like !== 0 && Math.abs(like) < 1e-2) return value.toExponential(1);
  const digits = like === 0 ? 2 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(like))));
  return value.toFixed(Math.min(4, digits));
}

const shownMethods = () => data.methods.filter((method) => !state.off.has(method.name));

function ticks(low, high, log) {
  if (log) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const part of [1, 2, 5]) found.push(part * 10 ** power);
    const inside = found.filter((value) => value >= low && value <= high);
    if (inside.length < 3) return ticks(low, high, false).filter((value) => value >= low);
    return inside.length > 8 ? inside.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9) : inside;
  }
  const rough = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((part) => part * power).find((part) => part >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
  return found;
}

const tickText = (value) => String(Number(value.toPrecision(3)));

function scale(low, high, from, to, log) {
  const map = log ? Math.log : Number;
  const span = map(high) - map(low) || 1;
  return (value) => from + ((map(value) - map(low)) / span) * (to - from);
}

// ---------- regret curves

/** The strong curves of a panel: the method in question, and the other one with the least regret in the end. */
function strongOf(problem, methods) {
  const panel = data.curves.cumulative[problem];
  const end = (method) => panel.methods[method.name].mean[panel.steps.length - 1];
  const others = methods.filter((method) => method.name !== state.against && !method.published);
  const rival = others.reduce((best, method) => (best && end(best) <= end(method) ? best : method), undefined);
  return new Map([[state.against, "strong"], ...(rival ? [[rival.name, "rival"]] : [])]);
}

/** Every mean is seen from the first step to the last; bands may go below the axis. */
function range(panel, methods, strong) {
  const log = state.axis === "log";
  const values = methods.flatMap((method) => {
    const curve = panel.methods[method.name];
    return state.spread && strong.has(method.name) ? [...curve.mean, ...curve.high] : curve.mean;
  });
  const positive = values.filter((value) => value > 0);
  const high = Math.max(...positive, 1e-300);
  if (!log) return [0, high * 1.02];
  return positive.length ? [Math.max(Math.min(...positive) * 0.9, high * 1e-8), high * 1.1] : [0.1, 1];
}

/** How a method is colored, on light and on dark pages. */
const ink = (method) => `--light:${method.color};--dark:${method.dark}`;

function drawPanel(problem) {
  const panel = data.curves[state.curve][problem], log = state.axis === "log";
  const methods = shownMethods().filter((method) => panel.methods[method.name]);
  const strong = strongOf(problem, methods), [low, high] = range(panel, methods, strong), last = panel.steps[panel.steps.length - 1];
  const x = scale(1, Math.max(2, last), LEFT, WIDTH - RIGHT, false);
  const y = scale(low, high, HEIGHT - BOTTOM, TOP, log);
  const height = (value) => y(log ? Math.max(value, low * 1e-3) : value);
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `regret curves on ${problem}` });
  for (const value of ticks(low, high, log)) {
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
    svg.append(shape("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, tickText(value)));
  }
  for (const value of ticks(1, last, false)) {
    svg.append(shape("text", { x: x(value), y: HEIGHT - BOTTOM + 15, "text-anchor": "middle" }, tickText(value)));
  }
  const what = byId("curve").querySelector(`[value="${state.curve}"]`).textContent;
  svg.append(shape("text", { class: "axis", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "evaluation"));
  svg.append(shape("text", { class: "axis", transform: `translate(13 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, what));
  const clip = `inside-${data.problems.indexOf(problem)}`, inside = shape("g", { "clip-path": `url(#${clip})` });
  const frame = shape("clipPath", { id: clip });
  frame.append(shape("rect", { x: LEFT, y: 0, width: WIDTH - LEFT, height: HEIGHT - BOTTOM }));
  svg.append(frame, inside);
  const weight = (method) => ["strong", "rival"].indexOf(strong.get(method.name)) + 1 || 3;
  for (const method of [...methods].sort((a, b) => weight(b) - weight(a))) { // what is strong is drawn last, on top
    const curve = panel.methods[method.name], kind = strong.get(method.name) ?? "";
    const points = (values) => panel.steps.map((step, i) => `${x(step).toFixed(1)},${height(values[i]).toFixed(1)}`);
    if (state.spread && kind) {
      const band = [...points(curve.high), ...points(curve.low).reverse()].join(" ");
      inside.append(shape("polygon", { class: `method band ${kind}`, style: ink(method), points: band }));
    }
    inside.append(shape("polyline", { class: `method curve ${kind}`, "data-method": method.name, style: ink(method),
      "stroke-dasharray": method.dashes, points: points(curve.mean).join(" ") }));
  }
  const cursor = shape("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => point(event, svg, cursor, problem, x));
  svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); byId("tip").hidden = true; });
  return element("figure", {}, element("figcaption", {}, problem), svg);
}

function point(event, svg, cursor, problem, x) {
  const box = svg.getBoundingClientRect(), panel = data.curves[state.curve][problem];
  const at = ((event.clientX - box.left) / box.width) * WIDTH;
  let nearest = 0;
  panel.steps.forEach((step, i) => { if (Math.abs(x(step) - at) < Math.abs(x(panel.steps[nearest]) - at)) nearest = i; });
  const where = x(panel.steps[nearest]);
  cursor.setAttribute("x1", where); cursor.setAttribute("x2", where); cursor.setAttribute("visibility", "visible");
  const rows = shownMethods().filter((method) => panel.methods[method.name])
    .map((method) => ({ method, at: (part) => panel.methods[method.name][part][nearest] }))
    .sort((a, b) => a.at("mean") - b.at("mean"))
    .map(({ method, at }) => element("div", {},
      element("span", {}, element("span", { class: "method swatch", style: ink(method) }), method.name),
      element("span", {}, `${format(at("mean"))} (${format(at("low"), at("mean"))} to ${format(at("high"), at("mean"))})`)));
  const tip = byId("tip");
  tip.replaceChildren(element("b", {}, `evaluation ${panel.steps[nearest]}`), ...rows);
  tip.hidden = false;
  const right = event.clientX + 16 + tip.offsetWidth > innerWidth;
  tip.style.left = `${Math.max(4, right ? event.clientX - 16 - tip.offsetWidth : event.clientX + 16)}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY, innerHeight - tip.offsetHeight - 8))}px`;
}

// ---------- table and ranks

function rankOf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return values.map((value) => (sorted.indexOf(value) + sorted.lastIndexOf(value)) / 2 + 1);
}

/** Ranks of the shown methods on the problems all of them have: {methods, problems, mean, sd}. */
function averageRanks(group) {
  const cells = data.cells[state.statistic];
  const methods = group.filter((method) => data.problems.some((problem) => cells[problem]?.[method.name]));
  const problems = data.problems.filter((problem) => methods.length && methods.every((method) => cells[problem]?.[method.name]));
  const table = problems.map((problem) => rankOf(methods.map((method) => cells[problem][method.name][0])));
  const mean = methods.map((_, j) => table.reduce((sum, row) => sum + row[j], 0) / problems.length);
  const sd = methods.map((_, j) => problems.length < 2 ? 0
    : Math.sqrt(table.reduce((sum, row) => sum + (row[j] - mean[j]) ** 2, 0) / (problems.length - 1)));
  return { methods, problems, mean, sd };
}

/** A row of [mean, sd, seeds] per method. Published runs are shown, but take no part in the contest. */
function tableRow(name, methods, entries, kind) {
  const ours = entries.filter((entry, j) => entry && !methods[j].published);
  const means = [...new Set(ours.map((entry) => entry[0]))].sort((a, b) => a - b);
  const row = element("tr", kind ? { class: kind } : {}, element("th", { scope: "row" }, name));
  entries.forEach((entry, j) => {
    const cell = element("td");
    if (entry) {
      const place = means.length > 1 && !methods[j].published ? means.indexOf(entry[0]) : -1;
      cell.className = ["first", "second"][place] ?? "";
      cell.append(element("span", { class: "mean" }, format(entry[0])), element("span", { class: "sd" }, ` ± ${format(entry[1], entry[0])}`));
      cell.title = entry[2] ? `${entry[2]} seeds` : "";
    }
    row.append(cell);
  });
  return row;
}

function drawTable() {
  const cells = data.cells[state.statistic];
  const methods = shownMethods().filter((method) => data.problems.some((problem) => cells[problem]?.[method.name]));
  const head = element("tr", {}, element("th", {}, ""), ...methods.map((method) => element("th", { scope: "col" }, method.name)));
  const rows = data.problems.filter((problem) => cells[problem])
    .map((problem) => tableRow(problem, methods, methods.map((method) => cells[problem][method.name])));
  const ranks = averageRanks(methods.filter((method) => !method.published));
  const places = new Map(ranks.methods.map((method, j) => [method, [ranks.mean[j], ranks.sd[j]]]));
  if (ranks.problems.length) rows.push(tableRow("average rank", methods, methods.map((method) => places.get(method)), "rank"));
  byId("table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

/** The tests of the statistic chosen above the table. */
function drawTests() {
  const lines = data.tests.tables[state.statistic];
  byId("tests").hidden = !lines;
  if (!lines) return;
  const [head, ...rows] = lines;
  byId("test-table").replaceChildren(
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...rows.map(([name, ...texts]) => element("tr", {},
      element("th", { scope: "row" }, name), ...texts.map((text) => element("td", {}, text))))));
}

/** Horizontal lines with a dot each: rows are {method, value, half, text}. Long names on a narrow page stand above. */
function dots(rows, low, high, log, label, axis) {
  const width = Math.max(300, Math.min(640, document.querySelector("main").clientWidth));
  const beside = 24 + 8.4 * Math.max(...rows.map(({ method }) => method.name.length)), above = beside > 0.45 * width;
  const left = above ? 14 : beside, right = 70, step = above ? 42 : 24, height = rows.length * step + 46;
  const x = scale(low, high, left, width - right, log);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const value of ticks(low, high, log)) {
    svg.append(shape("line", { class: "grid", x1: x(value), x2: x(value), y1: 0, y2: height - 38 }));
    svg.append(shape("text", { x: x(value), y: height - 24, "text-anchor": "middle" }, tickText(value)));
  }
  svg.append(shape("text", { class: "axis", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, axis));
  rows.forEach(({ method, value, half, text }, i) => {
    const y = i * step + step - 12;
    const place = above ? { x: 2, y: y - 12 } : { x: left - 12, y: y + 4, "text-anchor": "end" };
    svg.append(shape("text", { class: "name", ...place }, method.name));
    const ends = half === undefined ? [low, value] : [Math.max(low, value - half), Math.min(high, value + half)];
    const strength = method.name === state.against ? 5 : 3;
    svg.append(shape("line", { class: "method", style: ink(method), x1: x(ends[0]), x2: x(ends[1]), y1: y, y2: y, "stroke-width": strength, opacity: 0.45 }));
    svg.append(shape("circle", { class: "method", style: ink(method), cx: x(value), cy: y, r: strength + 2 }));
    svg.append(shape("text", { class: "name", x: width - right + 12, y: y + 4 }, text));
  });
  return svg;
}

function drawRanks() {
  const ranks = averageRanks(shownMethods().filter((method) => !method.published));
  const k = ranks.methods.length, n = ranks.problems.length, q = data.critical[k];
  const possible = k > 1 && n > 1 && q;
  byId("rank-hint").textContent = possible
    ? `Over ${n} problems, methods shown, published runs left out. Two methods differ significantly (Nemenyi, ${data.alpha}) where their lines do not overlap.`
    : "Ranks need two methods on two common problems.";
  if (!possible) return byId("ranks").replaceChildren();
  const half = (q * Math.sqrt((k * (k + 1)) / (6 * n))) / 2;
  const rows = ranks.methods.map((method, j) => ({ method, value: ranks.mean[j], half, text: ranks.mean[j].toFixed(2) }));
  rows.sort((a, b) => a.value - b.value);
  byId("ranks").replaceChildren(dots(rows, 0.5, k + 0.5, false, "average ranks", "average rank (1 is best)"));
}

function drawTiming() {
  const rows = shownMethods().filter((method) => method.seconds > 0)
    .map((method) => ({ method, value: method.seconds, text: `${format(method.seconds)} s` }));
  rows.sort((a, b) => a.value - b.value);
  if (!rows.length) return byId("timing").replaceChildren();
  const low = rows[0].value * 0.6, high = rows[rows.length - 1].value * 1.3;
  byId("timing").replaceChildren(dots(rows, low, high, true, "seconds per suggestion", "seconds"));
}

// ---------- what does not change

function drawFixedParts() {
  document.title = byId("title").textContent = data.title;
  byId("origin").textContent = data.origin;
  byId("against").append(...data.methods.filter((method) => !method.published).map((method) => element("option", {}, method.name)));
  byId("notes").append(...data.notes.map((note) => element("li", {}, note)));
  byId("statistic").append(...Object.entries(data.statistics).map(([key, text]) => element("option", { value: key }, text)));
  byId("settings").append(...data.settings.map(([name, value]) => element("tr", {}, element("th", {}, name), element("td", {}, value))));
  byId("test-hint").textContent = data.tests.note;
  byId("failures").append(data.failures.length
    ? element("div", {}, ...data.failures.map((one) => element("details", {},
      element("summary", {}, `${one.name}: ${one.error}`), element("pre", {}, one.traceback))))
    : element("p", {}, "None."));
  for (const method of data.methods) {
    const swatch = shape("svg", { width: 22, height: 8, "aria-hidden": "true" });
    swatch.append(shape("line", { class: "method", style: ink(method), x1: 0, x2: 22, y1: 4, y2: 4, "stroke-width": 3, "stroke-dasharray": method.dashes }));
    const button = element("button", { type: "button", "data-method": method.name }, swatch, method.name);
    button.addEventListener("click", () => { state.off.delete(method.name) || state.off.add(method.name); update(); });
    byId("methods").append(button);
  }
}

// ---------- state: in the address, so that a view can be sent to somebody

function readAddress() {
  const found = new URLSearchParams(location.hash.slice(1));
  const names = data.methods.map((method) => method.name);
  state.off = new Set((found.get("off") ?? "").split(",").filter((name) => names.includes(name)));
  state.curve = found.get("curve") in data.curves ? found.get("curve") : "cumulative";
  state.axis = found.get("axis") === "linear" ? "linear" : "log";
  state.statistic = found.get("statistic") in data.statistics ? found.get("statistic") : "final";
  state.against = names.includes(found.get("against")) ? found.get("against") : data.against;
  state.spread = found.get("spread") !== "no";
}

const published = data.methods.filter((method) => method.published).map((method) => method.name);

function update() {
  for (const button of byId("methods").children) button.setAttribute("aria-pressed", String(!state.off.has(button.dataset.method)));
  for (const key of ["curve", "axis", "statistic", "against"]) byId(key).value = state[key];
  byId("spread").checked = state.spread;
  byId("published").checked = published.some((name) => !state.off.has(name));
  byId("panels").replaceChildren(...data.problems.map(drawPanel));
  drawTable();
  drawTests();
  drawRanks();
  drawTiming();
  const address = new URLSearchParams();
  if (state.off.size) address.set("off", [...state.off].join(","));
  for (const [key, usual] of [["curve", "cumulative"], ["axis", "log"], ["statistic", "final"], ["against", data.against]])
    if (state[key] !== usual) address.set(key, state[key]);
  if (!state.spread) address.set("spread", "no");
  const text = String(address);
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

drawFixedParts();
for (const key of ["curve", "axis", "statistic", "against"])
  byId(key).addEventListener("change", (event) => { state[key] = event.target.value; update(); });
byId("spread").addEventListener("change", (event) => { state.spread = event.target.checked; update(); });
byId("published").parentElement.hidden = !published.length;
byId("published").addEventListener("change", (event) => {
  for (const name of published) event.target.checked ? state.off.delete(name) : state.off.add(name);
  update();
});
addEventListener("hashchange", () => { readAddress(); update(); });
addEventListener("scroll", () => { byId("tip").hidden = true; }, { passive: true });
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; update(); } });
readAddress();
update();
