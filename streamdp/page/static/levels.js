// What stands in the place of the live stories: their themes, or the stories that ended.

import { $, el, fill, say } from "./dom.js";
import { get } from "./api.js";
import { swatch } from "./colours.js";
import { count, full } from "./format.js";
import { named } from "./strip.js";

const STEP = 25;

export class Levels {
  constructor(open, back) {
    this.open = open;
    this.back = back;
    this.level = "live";
    this.most = STEP;
    this.wanted = "20";
    for (const button of document.querySelectorAll("[data-level]")) button.addEventListener("click", () => this.choose(button.dataset.level));
    $("themes-wanted").addEventListener("change", (event) => { this.wanted = event.target.value; this.load(); });
    $("further").addEventListener("click", () => { this.most += 2 * STEP; this.load(); });
  }

  choose(level) {
    this.level = level;
    this.most = STEP;
    for (const button of document.querySelectorAll("[data-level]")) button.setAttribute("aria-pressed", String(button.dataset.level === level));
    $("clusters-title").dataset.level = level;
    named();
    $("live").hidden = level !== "live";
    $("level").hidden = level === "live";
    $("themes-asked").hidden = level !== "themes";
    fill($("level-rows"));
    say($("lacking"), level === "live" ? "" : "one moment…");
    $("further").hidden = true;
    if (level === "live") this.back();
    else this.load();
  }

  async load() {
    const level = this.level;
    const search = $("search").value.trim();
    const asked = level === "themes" ? `api/themes?themes=${this.wanted}` : `api/ended?${new URLSearchParams({ search, limit: Math.min(100, this.most) })}`;
    let told;
    try {
      told = await get(asked);
    } catch (error) {
      say($("lacking"), `${error.message}.`);
      return;
    }
    if (level !== this.level || search !== $("search").value.trim()) return;
    if (level === "themes") this.themes(told, search);
    else this.ended(told, search);
  }

  themes(told, search) {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (theme) => words.every((word) => `${theme.theme} ${theme.name} ${theme.keywords.join(" ")} ${theme.stories.map((s) => s.name).join(" ")}`.toLowerCase().includes(word));
    const rows = told.themes.filter(has);
    say($("found"), words.length ? `${count(rows.length)} of ${count(told.themes.length)}` : `${count(told.themes.length)}, of ${count(told.of)} stories`);
    say($("lacking"), told.why);
    this.fill(["Theme", "Stories", "Records", "Now", "Trend"], rows.map((theme) => {
      const more = theme.now - theme.before;
      const own = theme.stories.map((s, i) => [i ? ", " : "", el("button", { type: "button", class: "link", onclick: () => this.open(s.cluster) }, s.name)]);
      const others = theme.count > theme.stories.length ? ` and ${count(theme.count - theme.stories.length)} more` : "";
      return [
        el("div", { class: "mark" }, el("span", { class: swatch(theme.slot) }), el("div", {}, el("strong", {}, theme.name), el("span", { class: "words" }, theme.keywords.join(" ")), el("span", { class: "members" }, own, others))),
        count(theme.count), count(theme.size), theme.now ? count(theme.now) : "–",
        more > 0 ? `▲ ${count(more)}` : more < 0 ? `▼ ${count(-more)}` : theme.now ? "=" : "–",
      ];
    }));
    $("further").hidden = true;
  }

  ended(told, search) {
    say($("found"), count(told.found));
    say($("lacking"), told.ended.length ? told.lacking : `${search ? "No story that ended has these words." : "No story has ended."} ${told.lacking ? `Known: ${told.lacking}.` : ""}`);
    this.fill(["Story", "Records", "Last heard of"], told.ended.map((row) => [
      el("div", { class: "mark" }, el("span", { class: "swatch none" }), el("div", {}, el("button", { type: "button", class: "open", onclick: () => this.open(row.cluster) }, row.name), el("span", { class: "words" }, row.keywords.join(" ")))),
      count(row.size), row.last_time === null ? `no. ${count(row.last_seq)}` : full(row.last_time),
    ]));
    $("further").hidden = told.found <= told.ended.length || this.most >= 100;
  }

  fill(heads, rows) {
    fill($("level-rows"), el("table", {}, el("thead", {}, el("tr", {}, heads.map((head, i) => el("th", { scope: "col", class: i ? "number" : "what" }, head)))), el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) => el(i ? "td" : "th", { class: i ? "number" : "what", scope: i ? null : "row" }, cell)))))));
  }
}
