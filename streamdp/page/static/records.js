// Records as they are answered, and what happened to clusters.

import { $, el, fill, moment, say } from "./dom.js";
import { swatch } from "./colours.js";
import { count, percent } from "./format.js";

const AT_ONCE = 4; // more at a time nobody can read
const HELD = 24;

export function record(told, open, of = null, more = null) {
  const chip = (label, title, slot) => el("button", { type: "button", class: "chip", "data-cluster": label, onclick: () => open(label) }, el("span", { class: swatch(slot) }), el("span", { class: "name" }, title));
  const where = told.label === of ? null : told.label < 0 ? el("span", { class: "chip" }, told.title) : chip(told.label, told.title, told.slot);
  const others = told.was.filter((old) => old.title !== told.title); // what was merged is called as what it is now
  const was = others.map((old) => [el("del", { title: "what was said before" }, old.title), " "]);
  const meta = [
    moment(told.time, told.seq),
    told.was.length || told.revision ? el("span", { class: "revised", title: "it was given to another story first" }, "moved ") : told.new ? el("span", { class: "first" }, "begins a story ") : null,
    told.probability === null ? null : el("span", { class: "sure", title: "how sure the program is that it belongs there; not the chance that this is right" }, `${percent(told.probability)} sure`),
    was,
    where,
    more,
  ];
  return el("li", { "data-seq": told.seq, class: told.was.length ? "was" : null }, el("p", {}, told.text || told.id || `record ${count(told.seq)}`), el("div", { class: "meta" }, meta));
}

export class Records {
  constructor(open) {
    this.open = open;
    this.list = $("records");
  }

  show(tick, whole) {
    for (const [label, title] of Object.entries(tick.titles || {})) {
      for (const shown of this.list.querySelectorAll(`[data-cluster="${label}"] .name`)) say(shown, title);
    }
    const fresh = whole ? tick.records.slice(0, HELD) : tick.records.slice(0, AT_ONCE);
    const revised = tick.revised.slice(0, 3);
    const once = new Map([...revised, ...fresh].map((told) => [told.seq, told]));
    const made = [...once.values()].map((told) => record(told, this.open));
    if (whole) fill(this.list, made);
    else {
      for (const { dataset } of made) this.list.querySelector(`li[data-seq="${dataset.seq}"]`)?.remove();
      made.forEach((li) => li.classList.add("new"));
      this.list.prepend(...made);
    }
    while (this.list.children.length > HELD) this.list.lastChild.remove();
    const pace = tick.status.rate || 0;
    say($("sampled"), pace > AT_ONCE && tick.status.state === "running" ? `a few of ${count(pace)} a second` : "");
  }
}

const KINDS = {
  born: ["New", "its first record came"],
  closed: ["Ended", "it takes no more records"],
  retired: ["Ended", "there were too many live ones, or it was silent for long"],
  merged: ["Joined", "its records are part of another from now on"],
  split: ["Split off", "some records left another"],
  vanished: ["Emptied", "its last record was given to others"],
  silent: ["Silent", "no record for unusually long"],
  surged: ["Surged", "unusually many records"],
  titled: ["Title", "what it is called"],
  renamed: ["New title", "what it is called from now on"],
};

export function event(told, open, of = null) {
  const link = (label, title) => el("button", { type: "button", class: "link", onclick: () => open(label) }, title);
  const other = told.other === null || told.other === undefined || told.other === of ? null : [told.event === "merged" ? " into " : told.event === "split" ? " from " : " – ", link(told.other, told.other_title)];
  const [kind, help] = KINDS[told.event] || [told.event];
  const size = told.records > 1 ? el("span", { class: "faint" }, `${count(told.records)} records`) : null;
  const title = told.label === of ? null : link(told.label, told.title);
  return el("li", { class: told.event }, el("span", { class: "kind", title: help }, kind), el("span", { class: "what" }, title, other, " ", size), moment(told.time, told.seq));
}

export class Events {
  constructor(open) {
    this.open = open;
    this.list = $("events");
  }

  show(tick, whole) {
    const made = tick.events.slice(0, 12).map((told) => event(told, this.open));
    if (whole) fill(this.list, made.length ? made : el("li", { class: "nothing" }, "Nothing yet."));
    else if (made.length) {
      this.list.querySelector(".nothing")?.remove();
      this.list.prepend(...made);
    }
    while (this.list.children.length > 14) this.list.lastChild.remove();
  }
}
