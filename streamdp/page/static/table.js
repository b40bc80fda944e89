// The table of live clusters: rows are kept and changed, not made anew.

import { $, el, fill, moment, say } from "./dom.js";
import { get } from "./api.js";
import { looks, slotOf, swatch } from "./colours.js";
import { count, now as lately, trend as more } from "./format.js";

const COLUMNS = [
  ["name", "Story", "what", "ascending"],
  ["size", "Records", "number", "descending", "how many records it has"],
  ["now", "Now", "number", "descending", "records in the latest stretch of the stream's own time"],
  ["trend", "Trend", "number", "descending", "how many more that is than in the stretch before"],
  ["began", "Began", "number wide-only", "descending", "when its first record came, before the newest of all"],
  ["last", "Latest", "number wide-only", "descending", "when its latest record came, before the newest of all"],
  ["level", "Level", "wide-only lines-only", null, "of most of its lines"],
];
const SORTS = { name: "title", trend: "growing", began: "new" }; // as questions have them
const STEP = 25;
const MOST = 500;

export class Table {
  constructor(open) {
    this.open = open;
    this.sort = "trend";
    this.order = "descending";
    this.reverse = false; // the other way round than this order is
    this.most = STEP;
    this.rows = new Map();
    this.known = null;
    this.body = $("table").tBodies[0];
    fill($("table").tHead, el("tr", {}, COLUMNS.map(([key, title, kind, first, help]) => el("th", { scope: "col", class: kind, title: help, "data-key": key }, first ? el("button", { type: "button", onclick: () => this.sortBy(key) }, title) : title))));
    this.mark();
    let timer = 0;
    $("search").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => { this.most = STEP; if (this.other && this.other.level !== "live") this.other.load(); else this.load(); }, 150); });
    $("more").addEventListener("click", () => { this.most = Math.min(MOST, this.most + 2 * STEP); this.load(); });
  }

  sortBy(key) {
    const first = COLUMNS.find((c) => c[0] === key)[3];
    const other = { ascending: "descending", descending: "ascending" };
    this.order = this.sort === key ? other[this.order] : first;
    this.reverse = this.order !== first;
    this.sort = key;
    this.mark();
    this.load();
  }

  mark() {
    for (const th of $("table").tHead.rows[0].cells) {
      if (th.dataset.key === this.sort) th.setAttribute("aria-sort", this.order);
      else th.removeAttribute("aria-sort");
    }
  }

  async load() {
    const search = $("search").value.trim();
    const asked = new URLSearchParams({ search, which: search ? "all" : "live", sort: SORTS[this.sort] || this.sort, reverse: this.reverse, least: 1, limit: this.most });
    const number = (this.number = (this.number || 0) + 1);
    let told;
    let shown = {};
    try {
      told = await get(`v1/stories?${asked}`);
      if (told.stories.length) ({ shown } = await get(`api/shown?labels=${told.stories.map((row) => row.label).join()}`));
    } catch {
      return;
    }
    looks(Object.entries(shown).map(([label, own]) => [label, own.slot]));
    if (number !== this.number || (this.other && this.other.level !== "live")) return;
    say($("found"), search ? `${count(told.total)} found, ended ones too` : `${count(told.total)}${this.words ? `, now: the last ${this.words.replace(/^1 /, "")}` : ""}`);
    $("more").hidden = told.next === null || this.most >= MOST;
    this.show(told.stories.map((row) => ({ ...row, ...shown[row.label] })), search);
  }

  show(stories, search) {
    const wanted = new Set(stories.map((row) => row.label));
    for (const [label, tr] of this.rows) if (!wanted.has(label)) { tr.remove(); this.rows.delete(label); }
    const youngest = this.known;
    $("table").classList.toggle("levels", stories.some((row) => row.level));
    this.largest = Math.max(1, ...stories.map((row) => row.records));
    stories.forEach((row, i) => {
      let tr = this.rows.get(row.label);
      if (!tr) {
        tr = this.made(row);
        if (youngest !== null && row.label > youngest) tr.classList.add("new");
        this.rows.set(row.label, tr);
      }
      if (this.body.rows[i] !== tr) this.body.insertBefore(tr, this.body.rows[i] || null);
      this.update(tr, row);
    });
    this.known = Math.max(this.known ?? -1, ...stories.map((row) => row.label));
    if (!stories.length) {
      if (!this.nothing) this.nothing = el("tr", {}, el("td", { colspan: COLUMNS.length, class: "nothing" }));
      say(this.nothing.cells[0], search ? "Nothing has these words, live or ended." : "Nothing yet.");
      this.body.append(this.nothing);
    } else this.nothing?.remove();
  }

  // the stretch of the stream's own time that is now
  stretch(words) {
    const help = `records in the latest ${words} of the stream's own time`;
    const [now, trend] = ["now", "trend"].map((key) => $("table").tHead.querySelector(`[data-key=${key}]`));
    this.words = words;
    if (words && now.title !== help) { now.title = help; trend.title = `how many more that is than in the ${words} before`; }
  }

  // names change as clusters grow: the table says what the graph says
  name(bands) {
    for (const band of bands) {
      const tr = this.rows.get(band.label);
      if (tr) say(tr.querySelector(".open"), band.title);
    }
  }

  // Lines of a log have templates, levels, and bars of how many there are.
  kind(kind) {
    for (const each of [$("table"), document.body]) each.classList.toggle("lines", kind === "lines");
  }

  made(row) {
    const open = el("button", { type: "button", class: "open", onclick: () => this.open(row.label) });
    const cells = [
      el("th", { scope: "row", class: "what" }, el("div", { class: "mark" }, el("span", { class: "swatch none" }), el("div", {}, open, el("span", { class: "words" }), el("span", { class: "said" })))),
      ...COLUMNS.slice(1).map((c) => el("td", { class: c[2] })),
    ];
    return el("tr", { "data-cluster": row.label }, cells);
  }

  update(tr, row) {
    const [what, size, now, trend, began, last, level] = tr.cells;
    const mark = swatch(slotOf(row.label));
    const [square, texts] = what.firstChild.children;
    if (square.className !== mark) square.className = mark;
    const [open, words, said] = texts.children;
    say(open, row.title);
    say(words, row.template ? "" : row.keywords.slice(0, 5).join(" "));
    say(said, row.samples?.at(-1) || "");
    const bar = size.querySelector(".bar") || size.appendChild(el("span", { class: "bar" }));
    if (!size.firstChild.data) size.prepend(" ");
    if (size.firstChild.data !== count(row.records)) size.firstChild.data = count(row.records);
    bar.style.width = `${Math.max(2, (100 * row.records) / this.largest).toFixed(1)}%`;
    say(level, row.level || "");
    say(now, lately(row));
    say(trend, row.ended ? "ended" : more(row));
    trend.title = `${count(row.now)} now, ${count(row.before)} before`;
    trend.dataset.way = Math.sign(row.now - row.before);
    for (const [cell, t, seq] of [[began, row.began_time, row.first_seq], [last, row.last_time, row.last_seq]]) {
      if (cell.firstChild?.dataset.time !== String(t)) fill(cell, moment(t, seq)); // or else what a mouse is over would go
    }
  }
}
