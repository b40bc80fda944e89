// One cluster: what it is about, its records, its life, and who is near.

import { $, el, fill, moment } from "./dom.js";
import { get } from "./api.js";
import { colour, looks, slotOf, swatch } from "./colours.js";
import { count, digits, now, percent, share, short, trend, when } from "./format.js";
import { event, record } from "./records.js";

export class Cluster {
  constructor(open, close, corrections) {
    this.corrections = corrections;
    this.shown = null;
    this.further = null; // all records of one cluster, as far as they were asked for
    this.open = open;
    this.close = close;
    this.label = null;
    this.panel = $("cluster");
  }

  async show(label) {
    if (label !== this.label) { this.further = null; this.corrections.form = null; this.corrections.note = null; }
    this.label = label;
    await this.load();
    this.panel.hidden = false;
    document.body.classList.add("one");
    this.panel.querySelector("h2")?.focus({ preventScroll: true });
    if (matchMedia("(max-width: 60rem)").matches) scrollTo({ top: 0 });
  }

  hide() {
    this.label = null;
    this.panel.hidden = true;
    document.body.classList.remove("one");
  }

  // ``must``: even while somebody types here.
  async load(must = false) {
    if (this.label === null || (this.corrections.asking && !must)) return;
    const label = this.label;
    const own = await get(`api/shown/${label}`).catch(() => null);
    const asked = [`v1/events/list?label=${label}`, `v1/stories/${label}`, `v1/stories/${label}/records?latest=true&limit=12`];
    const found = await Promise.allSettled(asked.slice(0, own?.merged_into ? 1 : 3).map(get));
    if (label !== this.label) return;
    const [life, story, records] = asked.map((_, i) => found[i]?.value ?? null);
    if (!story && !own) {
      if (this.shown === label) return;
      this.shown = null;
      fill(this.panel, this.head({ title: `number ${label}`, slot: null }), el("p", { class: "gone", role: "status" }, `${found[1].reason.message}.`));
      return;
    }
    looks([[label, own?.slot ?? null]]);
    this.shown = label;
    this.told = { ...story, ...own, ...(story && { title: story.title }), label, merged_into: own?.merged_into, slot: slotOf(label), live: story !== null && !story.ended, list: records?.records || [], life: life?.events || [] };
    this.draw();
  }

  draw() {
    const told = this.told;
    const focused = this.panel.contains(document.activeElement) ? document.activeElement.dataset.key || document.activeElement.tagName : null;
    const scroll = this.panel.scrollTop;
    fill(this.panel, this.head(told), this.about(told), this.corrections.actions(told), this.line(told), this.holes(told), this.words(told), this.centre(told), this.records(told), this.life(told), this.near(told));
    this.panel.scrollTop = scroll;
    const typing = this.panel.querySelector(".asked input");
    if (typing) typing.focus({ preventScroll: true });
    else if (focused === "close") this.panel.querySelector("[data-key=close]").focus({ preventScroll: true });
    else if (focused) this.panel.querySelector("h2").focus({ preventScroll: true });
  }

  head(told) {
    const close = el("button", { type: "button", class: "close", "data-key": "close", "aria-label": "Close this panel", onclick: this.close }, "×");
    return el("div", { class: "head" }, el("h2", { id: "cluster-title", tabindex: "-1" }, el("span", { class: swatch(told.slot) }), told.title, told.pinned ? el("span", { class: "pinned", title: "it never becomes part of another, and never closes" }, "pinned") : null), close);
  }

  about(told) {
    if (told.merged_into) return el("p", { class: "gone" }, "It is now part of ", this.link(told.merged_into), ".");
    const gone = told.live ? null : el("p", { class: "gone" }, "It has ended: it takes no more records.");
    if (told.records === undefined) return gone;
    const pairs = [
      ["records", count(told.records), "how many it has"],
      ["now", now(told), "records in the latest stretch of time, as the table says it"],
      ["trend", told.live ? trend(told) : "ended", "how many more that is than in the stretch before"],
      ["began", moment(told.began_time, told.first_seq)],
      ["latest", moment(told.last_time, told.last_seq)],
      ["number", String(told.label), "what commands and programs call it by"],
    ];
    return [gone, told.template ? el("p", { class: "template" }, told.title) : null, el("dl", { class: "figures" }, pairs.map(([name, value, title]) => el("div", { title }, el("dt", {}, name), el("dd", {}, value))))];
  }

  line(told) {
    const { counts, start, width, axis } = told.over_time || { counts: [] };
    if (counts.length < 2) return null;
    const top = Math.max(1, ...counts);
    const ns = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(ns, "svg");
    svg.setAttribute("viewBox", `0 0 ${counts.length - 1} 40`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `Its records over time, at most ${top} at once`);
    const path = document.createElementNS(ns, "path");
    path.setAttribute("d", `M0 40 ${counts.map((n, i) => `L${i} ${(40 - 38 * (n / top)).toFixed(1)}`).join(" ")} L${counts.length - 1} 40Z`);
    path.setAttribute("fill", told.slot === null ? "currentColor" : colour(told.slot));
    svg.append(path);
    const end = start + width * counts.length;
    const say = (t) => (axis === "dates" ? when(t, end - start) : short(t));
    return el("figure", { class: "line" }, svg, el("figcaption", {}, el("span", {}, say(start)), el("span", {}, say(end))));
  }

  words(told) {
    const found = told.against_base || (told.words || []).map(([word, n]) => ({ word, count: n, base: null }));
    if (!found.length || told.template) return null;
    const most = Math.max(...found.map((w) => w.count));
    const tokens = told.tokens || 0;
    return [
      el("h3", {}, "Its words", el("span", { class: "faint" }, tokens ? ": how often, and how many times as often as elsewhere" : "")),
      el("ul", { class: "bars" }, found.map((w) => {
        const lift = tokens && w.base ? w.count / tokens / w.base : null;
        const bar = el("span", { class: "bar" });
        bar.style.width = `${Math.max(2, (100 * w.count) / most)}%`;
        if (told.slot !== null) bar.style.background = colour(told.slot);
        return el("li", {}, el("span", { class: "word" }, w.word), el("span", { class: "track" }, bar), el("span", { class: "number" }, count(w.count)), el("span", { class: "number faint" }, lift === null ? "" : `${lift >= 9.5 ? count(lift) : lift.toFixed(1)} ×`));
      })),
    ];
  }

  holes(told) {
    if (!told.holes?.length) return null;
    let nth = 0;
    return [
      el("h3", {}, "Its holes", el("span", { class: "faint" }, " and what stands in them")),
      told.holes.map((hole) => {
        const name = hole.kind === "level" ? "level" : `hole ${++nth} ${hole.kind}`;
        const numbers = hole.least === null ? "" : `${digits(hole.least)} to ${digits(hole.most)}, half up to ${digits(hole.median)}, nine in ten up to ${digits(hole.decile)}`;
        const facts = [hole.distinct === 1 ? "1 value" : `${count(hole.distinct)} values`, numbers, `newest ${hole.newest}`, `of ${count(hole.lines)} lines`];
        return el("div", { class: "hole" }, el("p", {}, el("b", {}, name), ` ${facts.filter(Boolean).join("; ")}`), el("ul", { class: "bars" }, hole.common.map(([value, part], i) => {
          const bar = el("span", { class: "bar" });
          bar.style.width = `${Math.max(2, 100 * part)}%`;
          return el("li", {}, el("span", { class: "word", title: value }, value), el("span", { class: "track" }, bar), el("span", { class: "number" }, count(hole.counts[i])), el("span", { class: "number faint" }, share(part)));
        })));
      }),
    ];
  }

  centre(told) {
    const { mean } = told;
    if (!mean) return null;
    return [el("h3", {}, "Its centre", el("span", { class: "faint" }, mean.length > 15 ? " the first 16 numbers" : "")), el("p", { class: "centre" }, mean.map(digits).join("  "))];
  }

  records(told) {
    if (this.further) return this.all(told);
    const seen = new Set(told.list.map((r) => r.text));
    const samples = (told.samples || []).filter((text) => !seen.has(text));
    const list = this.rows(told, told.list);
    return [
      el("h3", {}, "Its records", el("span", { class: "faint" }, list.length ? " newest first" : "")),
      el("ol", { class: "records" }, list, samples.map((text) => el("li", {}, el("p", {}, text), el("div", { class: "meta" }, "typical")))),
      el("p", { class: "more" }, el("button", { type: "button", id: "all", "data-key": "all", onclick: () => this.more(told.label) }, "All records")),
    ];
  }

  rows(told, records) {
    return records.map((r) => record({ ...r, was: [], label: told.label }, this.open, told.label, this.corrections.mover(told, r)));
  }

  // Another page of them, from the store where there is one.
  async more(label) {
    const before = this.further?.records || [];
    let found;
    try {
      found = await get(`v1/stories/${label}/records?latest=true&after=${this.further?.next ?? -1}&limit=20`);
    } catch (error) {
      found = { next: null, records: [], lacking: error.message };
    }
    if (label !== this.label) return;
    this.further = { ...found, records: [...before, ...found.records] };
    this.draw();
  }

  all(told) {
    const { records, next, lacking } = this.further;
    return [
      el("h3", {}, "Its records", el("span", { class: "faint" }, ` ${count(records.length)} of ${count(Math.max(told.records || 0, records.length))}, newest first`)),
      lacking ? el("p", { class: "faint small" }, `Known: ${lacking}.`) : null,
      el("ol", { class: "records" }, this.rows(told, records)),
      next !== null ? el("p", { class: "more" }, el("button", { type: "button", id: "all", "data-key": "all", onclick: () => this.more(told.label) }, "Show more")) : null,
    ];
  }

  life(told) {
    if (!told.life.length) return null;
    return [el("h3", {}, "Its life"), el("ol", { class: "events" }, told.life.map((e) => event(e, this.open, told.label)))];
  }

  near(told) {
    if (!told.near?.length) return null;
    return [el("h3", {}, "Near it"), el("ul", { class: "near" }, told.near.map((n) => el("li", {}, this.link(n), el("span", { class: "faint", title: told.mean ? "1 at the same place, less the farther away" : "share of top words in common" }, percent(n.likeness)))))];
  }

  link(to) {
    return el("button", { type: "button", class: "link", onclick: () => this.open(to.label) }, to.title);
  }
}

