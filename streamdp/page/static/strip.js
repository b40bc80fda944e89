// The strip of figures at the top, and the settings at the foot.

import { $, el, fill, say } from "./dom.js";
import { count, full, isDate, rate, span, when } from "./format.js";

const STATES = { running: "live", ended: "input ended", snapshot: "snapshot", starting: "starting" };

function figures(s) {
  const refused = Object.entries(s.refused || {});
  const total = refused.reduce((sum, [, n]) => sum + n, 0);
  const found = [
    ["Records", count(s.records || 0), "answered since the stream began"],
    [`Live ${s.nouns?.[1] || "stories"}`, count(s.live || 0), `${count(s.larger || 0)} of them of more than three records; ${count(s.announced || 0)} since the stream began`],
  ];
  if (s.state === "running") found.splice(1, 0, ["Records a second", rate(s.rate), "over the last five seconds"]);
  if (s.lag) found.push(["Behind", s.lag.seconds ? span(s.lag.seconds) : count(s.lag.records), `${count(s.lag.records)} records are not read yet`]);
  else if (s.read !== undefined && s.state === "running") found.push(["Read", `${Math.floor(100 * s.read)} %`, "of the input"]);
  if (s.held_back) found.push(["Waiting", count(s.held_back), "records that wait for their turn"]);
  if (isDate(s.time)) found.push(["Newest record", when(s.time), `${full(s.time)}: "ago" is counted back from it`]);
  found.push(["Answers changed", count(s.revisions || 0), "records that were given to another story later, since this run began"]);
  if (total) found.push(["Refused", count(total), refused.map(([why, n]) => `${why} ${count(n)}`).join(", "), refused.slice(0, 2).map(([why, n]) => `${why} ${count(n)}`).join(", ")]);
  if (s.refined) found.push(["Refined", count(s.refined.records_refined || 0), `records moved by ${count(s.refined.refinements)} searches for a better clustering, of which ${count(s.refined.refinements_adopted)} found one`, "records moved"]);
  return found;
}

export function strip(s, state) {
  const list = $("strip");
  const found = figures(s);
  if (list.dataset.names !== found.map((f) => f[0]).join()) {
    list.dataset.names = found.map((f) => f[0]).join();
    fill(list, found.map(([name]) => el("div", {}, el("dt", {}, name), el("dd", {}), el("dd", { class: "note" }))));
  }
  found.forEach(([, value, help, note], i) => {
    const div = list.children[i];
    say(div.children[1], value);
    say(div.children[2], note || "");
    if (div.title !== help) div.title = help;
  });
  say($("stream"), s.stream);
  const shown = state || STATES[s.state] || s.state;
  say($("state"), shown);
  $("state").dataset.state = state ? "lost" : s.state;
  document.title = `${s.stream} – streamdp`;
  doubts(s.warnings || []);
  if (s.nouns) { nouns = s.nouns; named(); }
  foot(s);
}

// What the clusters are called: stories, templates, clusters.
let nouns = ["story", "stories"];

export function named() {
  const [one, many] = nouns;
  const listed = { live: `Live ${many} `, themes: "Themes ", changes: "What changed ", ended: `${many[0].toUpperCase()}${many.slice(1)} that ended ` };
  const large = (word) => word[0].toUpperCase() + word.slice(1);
  const heads = [["clusters-title", listed[$("clusters-title").dataset.level || "live"]], ["graph-title", `${large(many)} over time `]];
  for (const [id, text] of heads) if ($(id).firstChild.data !== text) $(id).firstChild.data = text;
  say($("table").tHead.querySelector("[data-key=name] button"), large(one));
}

function doubts(found) {
  const list = $("doubts");
  const key = found.join("\n");
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.hidden = !found.length;
  fill(list, found.map((line) => el("li", {}, line)));
}

function foot(s) {
  const lines = s.chosen || [];
  const key = lines.join("\n");
  const foot = $("foot");
  if (foot.dataset.key === key) return;
  foot.dataset.key = key;
  fill(foot, lines.length ? el("details", {}, el("summary", {}, "Settings that were chosen automatically"), el("ul", {}, lines.map((line) => el("li", {}, line)))) : null);
}
