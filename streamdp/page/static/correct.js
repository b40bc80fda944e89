// Corrections by hand: they go to the run, which says what came of them; each can be undone.

import { $, el, fill } from "./dom.js";
import { get, post } from "./api.js";
import { swatch } from "./colours.js";
import { count } from "./format.js";

export class Corrections {
  constructor(open, draw, changed) {
    this.open = open;
    this.draw = draw; // the story anew, of what is known of it
    this.changed = changed;
    this.allowed = false;
    this.shown = "";
    this.note = null; // what came of the last one
    this.form = null; // what is asked for just now
    this.busy = false;
  }

  // Whether somebody is about to correct: what he looks at is not made anew meanwhile.
  get asking() {
    return this.form !== null;
  }

  status(status) {
    this.allowed = Boolean(status.corrects);
    this.one = status.nouns?.[0] || "story";
    const key = `${status.corrections}/${this.allowed}`;
    if (key !== this.shown) { this.shown = key; this.list(); }
  }

  async send(body, told) {
    if (this.busy) return;
    this.busy = true;
    try {
      const made = await post("api/corrections", body);
      this.note = { text: told, undo: body.what === "undo" ? null : made.number };
      this.form = null;
    } catch (error) {
      this.note = { text: `Refused: ${error.message}.`, bad: true };
    }
    this.busy = false;
    this.list();
    this.changed();
  }

  undo(number) {
    return this.send({ what: "undo", undone: number }, `Correction ${number} is lifted: from now on it holds no more.`);
  }

  // ------------------------------------------------------------ of one story

  // The buttons of a story, or what is asked for in their place; and what came of the last.
  actions(told) {
    if (!this.allowed || !told.live) return this.said();
    const label = told.cluster;
    if (this.form && this.form.label === label) return [this.form.made, this.said()];
    const button = (name, what, help) => el("button", { type: "button", "data-correct": name, title: help, onclick: what }, name);
    return [
      el("div", { class: "actions", role: "group", "aria-label": `Correct this ${this.one}` },
        button("Rename", () => this.rename(told), "give it a title that stays"),
        told.template ? null : button("Merge…", () => this.choose(told, "Merge with", (to) => this.send({ what: "merge", stories: [label, to.cluster] }, `Merged with ${to.name}.`)), "its records and those of another stay together from now on"),
        told.template ? null : button("Keep apart…", () => this.choose(told, "Keep apart from", (to) => this.send({ what: "keep-apart", stories: [label, to.cluster] }, `Kept apart from ${to.name}.`)), "no record of it and of another are ever together"),
        told.template || told.figures?.pinned ? null : button("Pin", () => this.send({ what: "pin", stories: [label] }, "Pinned."), "it never becomes part of another, and never closes"),
        button("Mute", () => this.send({ what: "mute", stories: [label] }, "Muted: it is left out from now on."), "no events of it, and lists leave it out")),
      this.said(),
    ];
  }

  said() {
    if (!this.note) return null;
    const { text, undo, bad } = this.note;
    return el("p", { class: bad ? "note bad" : "note", role: "status" }, text, " ", undo ? el("button", { type: "button", class: "link", "data-undo": undo, onclick: () => this.undo(undo) }, "Undo") : null);
  }

  // A record goes to another story.
  mover(told, record) {
    if (!this.allowed || !told.live || told.template) return null;
    const send = (to) => this.send({ what: "move", stories: [to.cluster], seqs: [record.seq] }, `Moved to ${to.name}.`);
    return el("button", { type: "button", class: "link move", onclick: () => this.choose(told, `Move “${(record.text || `record ${count(record.seq)}`).slice(0, 60)}” to`, send) }, "Move…");
  }

  ask(label, made) {
    this.note = null;
    this.form = { label, made };
    this.draw();
    made.querySelector("input").focus();
  }

  cancel() {
    const button = el("button", { type: "button", onclick: () => this.leave() }, "Cancel");
    return button;
  }

  leave() {
    this.form = null;
    this.draw();
  }

  rename(told) {
    const input = el("input", { type: "text", maxlength: "120", "aria-label": "New title", value: told.name });
    const made = el("form", { class: "asked" }, input, el("div", { class: "actions" }, el("button", { type: "submit", class: "sure-of-it" }, "Save"), this.cancel()));
    made.addEventListener("submit", (event) => {
      event.preventDefault();
      const title = input.value.trim();
      if (title) this.send({ what: "rename", stories: [told.cluster], title }, `It is called “${title}” from now on.`);
    });
    this.ask(told.cluster, made);
  }

  // Another story, out of those near it or found by words.
  choose(told, title, done) {
    const list = el("ul", { class: "near", "aria-label": "Stories to choose from" });
    const input = el("input", { type: "search", placeholder: "Search words or a number", "aria-label": title, autocomplete: "off" });
    const show = (rows) => fill(list, rows.filter((row) => row.cluster !== told.cluster).map((row) => el("li", {}, el("button", { type: "button", class: "link", "data-cluster": row.cluster, onclick: () => done(row) }, el("span", { class: swatch(row.slot) }), row.name), el("span", { class: "faint" }, row.size === undefined ? "near it" : count(row.size)))));
    const find = async () => {
      const search = input.value.trim();
      const found = await get(`api/clusters?${new URLSearchParams({ search, limit: 8 })}`).catch(() => null);
      if (found && search === input.value.trim()) show(found.clusters);
    };
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(find, 150);
    });
    show(told.near);
    if (!told.near.length) find();
    const made = el("form", { class: "asked" }, el("p", {}, title), input, list, el("div", { class: "actions" }, this.cancel()));
    made.addEventListener("submit", (event) => { event.preventDefault(); list.querySelector("button")?.click(); });
    this.ask(told.cluster, made);
  }

  // ------------------------------------------------------------ all of them

  async list() {
    const told = await get("api/corrections").catch(() => null);
    if (!told) return;
    const rows = told.corrections.filter((row) => row.in_force);
    $("corrections").hidden = !rows.length;
    fill($("corrected"), rows.map((row) => el("li", {},
      el("span", {}, row.told, " ", el("span", { class: "faint" }, `${row.who}, ${row.when.slice(0, 16).replace("T", " ")}`)),
      told.allowed ? el("button", { type: "button", class: "link", "data-undo": row.number, "aria-label": `Undo correction ${row.number}`, onclick: () => this.undo(row.number) }, "Undo") : null)));
  }
}
