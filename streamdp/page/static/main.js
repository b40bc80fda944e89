// The page: ticks come in once a second and are handed out.

import { $, older } from "./dom.js";
import { at } from "./format.js";
import { get, listen } from "./api.js";
import { looks } from "./colours.js";
import { Cluster } from "./cluster.js";
import { Corrections } from "./correct.js";
import { Graph } from "./graph.js";
import { Levels } from "./levels.js";
import { Events, Records } from "./records.js";
import { scoring } from "./score.js";
import { strip } from "./strip.js";
import { Table } from "./table.js";

const open = (label) => { location.hash = `cluster/${label}`; };
const close = () => { history.pushState(null, "", location.pathname); route(); $("search").focus({ preventScroll: true }); };

const graph = new Graph(open);
const table = new Table(open);
const records = new Records(open);
const events = new Events(open);
const corrections = new Corrections(open, () => cluster.draw(), () => { cluster.load(true); table.load(); });
const cluster = new Cluster(open, close, corrections);
const levels = new Levels(open, () => table.load());
table.other = levels;
scoring(open);

let zoom = 1; // the last part of time that is drawn: 1 for all, 3 for a third; 0 for a stretch
let stretch = null;
let paused = false;
let waiting = null;
let number = 0;
let status = null;

function route() {
  const match = /^#cluster\/(\d+)$/.exec(location.hash);
  if (match) cluster.show(Number(match[1]));
  else cluster.hide();
}

async function drawn(tick) {
  if (zoom === 1) { graph.show(tick.graph); return; }
  const [first, last] = tick.graph.whole;
  const wanted = zoom ? `from=${last - (last - first) / zoom}` : `from=${stretch[0]}&to=${stretch[1]}`;
  const before = [zoom, stretch];
  try {
    const part = await get(`api/graph?${wanted}`);
    if (zoom === before[0] && stretch === before[1]) graph.show(part);
  } catch { /* the next tick comes soon */ }
}

function show(tick, whole) {
  drawn(tick);
  older();
  records.show(tick, whole);
  events.show(tick, whole);
  number += 1;
  if (levels.level !== "live") { if (whole || number % 8 === 0) levels.load(); }
  else if (whole || number % 2 === 0) table.load();
  else table.name(tick.graph.bands);
  if (whole || number % 3 === 0) cluster.load();
  if (tick.status.state !== "running") setTimeout(last, 2500); // no tick may follow, and answers are of a moment ago
}

function last() {
  if (levels.level === "live") table.load();
  else levels.load();
  cluster.load();
}

const SCORED = {
  vectors: "Type a vector, as a list of numbers: [0.5, 1.2]. Nothing is learned from it.",
  lines: "Type a line without its header. Nothing is learned from it.",
};

listen((tick, whole) => {
  status = tick.status;
  looks(Object.entries(tick.slots || {}));
  looks(tick.graph.bands.map((band) => [band.label, band.slot]));
  at(status.time);
  $("text").placeholder = SCORED[status.kind] || $("text").placeholder;
  $("main").hidden = false;
  strip(status);
  corrections.status(status);
  graph.waits = status.waits;
  table.kind(status.kind);
  document.querySelector("[data-level=themes]").hidden = status.kind === "lines";
  levels.dated = tick.graph.axis === "dates";
  table.stretch(status.stretch);
  if (document.hidden && !whole) { waiting = { tick, whole: true }; return; }
  if (paused && !whole) return;
  show(tick, whole);
}, () => { if (status) strip(status, "connection lost, trying again"); });

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && waiting && !paused) { drawn(waiting.tick); table.load(); cluster.load(); }
  waiting = null;
});

function setZoom(wanted, chosen = null) {
  zoom = wanted;
  stretch = chosen;
  for (const button of document.querySelectorAll("[data-zoom]")) button.setAttribute("aria-pressed", String(Number(button.dataset.zoom) === zoom));
  get("api/graph").then((whole) => drawn({ graph: whole })).catch(() => {});
}
for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => setZoom(Number(button.dataset.zoom)));
graph.stretched = (chosen) => setZoom(chosen ? 0 : 1, chosen);
graph.zoomed = (closer) => { const steps = [1, 3, 10]; setZoom(steps[Math.max(0, Math.min(2, steps.indexOf(zoom) + (closer ? 1 : -1)))]); };

$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  $("pause").textContent = paused ? "Go on" : "Pause";
  if (!paused) { setZoom(zoom, stretch); table.load(); cluster.load(); }
});

// Until the first record comes there are no ticks: a kernel may be compiled, and the page says so.
setInterval(async () => {
  if (status && status.waits) {
    try { const now = await get("api/status"); graph.waits = now.waits; graph.draw(); } catch { /* strip says it */ }
  }
}, 2000);

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && corrections.asking) { corrections.leave(); return; }
  if (event.key === "Escape" && cluster.label !== null) close();
  if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) { event.preventDefault(); $("search").focus(); }
});
addEventListener("hashchange", route);
route();
