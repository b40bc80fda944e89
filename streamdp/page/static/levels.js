// What stands in the place of the live stories: their themes, what has changed, or the stories that ended.

import { $, el, fill, moment, say } from "./dom.js";
import { get } from "./api.js";
import { slotOf, swatch } from "./colours.js";
import { count, full, now, share, trend, when } from "./format.js";
import { named } from "./strip.js";

const STEP = 25;
const MOST = 500;
const AGO = { "1h": "1 hour ago", "6h": "6 hours ago", "24h": "24 hours ago" };
const RECORDS_AGO = { "1000s": "1,000 records ago", "10000s": "10,000 records ago" };

export class Levels {
  constructor(open, back) {
    this.open = open;
    this.back = back;
    this.level = "live";
    this.most = STEP;
    this.wanted = "20";
    this.since = "";
    this.dated = true;
    for (const button of document.querySelectorAll("[data-level]")) button.addEventListener("click", () => this.choose(button.dataset.level));
    $("themes-wanted").addEventListener("change", (event) => { this.wanted = event.target.value; this.load(); });
    $("since").addEventListener("change", (event) => { this.since = event.target.value; this.most = STEP; this.load(); });
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
    $("changes-asked").hidden = level !== "changes";
    fill($("level-rows"));
    say($("lacking"), level === "live" ? "" : "one moment…");
    $("further").hidden = true;
    if (level === "live") this.back();
    else this.load();
  }

  async load() {
    const level = this.level;
    const search = $("search").value.trim();
    let told;
    try {
      if (level === "changes") await this.moments();
      const asked = {
        themes: `v1/themes?themes=${this.wanted}`,
        changes: `v1/changes?${new URLSearchParams({ since: this.since, limit: 500 })}`,
        ended: `v1/stories?${new URLSearchParams({ which: "ended", sort: "last", search, least: search ? 1 : 2, limit: Math.min(MOST, this.most) })}`,
      }[level];
      told = await get(asked);
    } catch (error) {
      if (level !== this.level) return;
      if (level === "changes") { fill($("level-rows")); say($("found"), ""); }
      say($("lacking"), `${error.message}.`);
      return;
    }
    if (level !== this.level || search !== $("search").value.trim()) return;
    if (level === "themes") this.themes(told, search);
    else if (level === "changes") this.changes(told, search);
    else this.ended(told, search);
  }

  themes(told, search) {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (theme) => words.every((word) => `${theme.theme} ${theme.title} ${theme.keywords.join(" ")} ${theme.titles.join(" ")}`.toLowerCase().includes(word));
    const rows = told.themes.filter(has);
    say($("found"), words.length ? `${count(rows.length)} of ${count(told.themes.length)}` : `${count(told.themes.length)}, of ${count(told.live)} stories`);
    say($("lacking"), told.themes.length ? "" : "Stories whose words are not known have no themes.");
    this.fill(["Theme", "Stories", "Records", "Now", "Trend"], rows.map((theme) => {
      const largest = theme.titles.map((title, i) => ({ label: theme.stories[i], title }));
      const own = largest.map((s) => this.link(s, "link"));
      const number = theme.stories.length;
      const alone = number === 1 ? largest[0] : null;
      const others = number > largest.length ? `and ${count(number - largest.length)} more` : "";
      return [
        el("div", { class: "mark" }, el("span", { class: swatch(slotOf(theme.stories[0])) }), el("div", {}, alone ? this.link(alone, "open") : el("strong", {}, theme.title), el("span", { class: "words" }, theme.keywords.join(" ")), alone ? null : el("span", { class: "members" }, own, others))),
        count(number), count(theme.records), now(theme), trend(theme),
      ];
    }));
    $("further").hidden = true;
  }

  // Marks, the latest first, and so long ago.
  async moments() {
    const marks = (await get("v1/marks")).marks.sort((a, b) => b.time - a.time);
    const named = marks.map((mark) => [mark.name, `${mark.name}, ${this.dated ? full(mark.time) : `no. ${count(mark.time)}`}`]);
    const found = [...Object.entries(this.dated ? AGO : RECORDS_AGO), ...named];
    if (!found.some(([value]) => value === this.since)) this.since = found[0][0];
    const key = JSON.stringify(found);
    if (key === $("since").dataset.key) return;
    $("since").dataset.key = key;
    fill($("since"), found.map(([value, text]) => el("option", { value, selected: value === this.since }, text)));
  }

  changes(told, search) {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (change) => words.every((word) => `${change.label} ${change.kind} ${change.title} ${change.line}`.toLowerCase().includes(word));
    const rows = told.changes.filter(has);
    const said = (at) => (told.dated ? when(at) : `no. ${count(at)}`);
    say($("found"), count(rows.length));
    say($("lacking"), `${rows.length ? "" : "Nothing has changed more than by chance. "}${said(told.since_time)} to ${said(told.end_time)}, compared with ${said(told.begin_time)} to ${said(told.until_time)}.`);
    this.fill(["What", "Before", "After", ["Surprise", "how unlikely it is that nothing has changed: 1 is one in 2.7, 10 one in 22,000"]], rows.slice(0, this.most).map((change) => {
      const title = change.kind === "gone" ? el("strong", {}, change.title) : el("button", { type: "button", class: "open", onclick: () => this.open(change.label) }, change.title);
      return [
        el("div", { class: "mark" }, el("div", {}, el("span", { class: `change ${change.kind}` }, change.kind), title, this.said(change))),
        count(change.before), count(change.after), count(change.surprise),
      ];
    }));
    $("further").hidden = rows.length <= this.most;
  }

  said(change) {
    if (change.hole) {
      const values = change.values.map(([value, before, after]) => el("span", { class: "members" }, `${change.hole}: `, el("b", {}, value), ` ${share(before)} before, ${share(after)} after`));
      return [values, el("span", { class: "members" }, "of the lines whose values are remembered")];
    }
    const levels = Object.entries(change.levels).map(([name, n]) => `${name} ${count(n)}`).join(", ");
    const lines = change.kind === "new" ? [[change.line_before, null], [change.line, "own"], [change.line_after, null]].filter(([line]) => line) : [];
    return [levels ? el("span", { class: "members" }, levels) : null, lines.length ? el("span", { class: "around" }, lines.map(([line, own]) => el("span", { class: own }, line))) : null];
  }

  ended(told, search) {
    say($("found"), count(told.total));
    const none = search ? "No story that ended has these words." : told.small ? "" : "No story has ended.";
    const small = told.small ? `${count(told.small)} of one record are not listed: a search finds them, too.` : "";
    say($("lacking"), [told.stories.length ? "" : none, small, told.lacking && `Known: ${told.lacking}.`].filter(Boolean).join(" "));
    this.fill(["Story", "Records", "Began", "Latest"], told.stories.map((row) => [
      el("div", { class: "mark" }, el("span", { class: "swatch none" }), el("div", {}, this.link(row, "open"), el("span", { class: "words" }, row.keywords.join(" ")))),
      count(row.records), moment(row.began_time, row.first_seq), moment(row.last_time, row.last_seq),
    ]));
    $("further").hidden = told.next === null || this.most >= MOST;
  }

  link(to, kind) {
    return el("button", { type: "button", class: kind, onclick: () => this.open(to.label) }, to.title);
  }

  fill(heads, rows) {
    if (!rows.length) { fill($("level-rows")); return; }
    fill($("level-rows"), el("table", {}, el("thead", {}, el("tr", {}, heads.map((head) => [head].flat()).map(([head, title], i) => el("th", { scope: "col", class: i ? "number" : "what", title }, head)))), el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, i) => el(i ? "td" : "th", { class: i ? "number" : "what", scope: i ? null : "row" }, cell)))))));
  }
}
