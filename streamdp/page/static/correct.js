// Corrections by hand: they go to the run, which says what came of them; each can be undone.

import { $, el, fill } from "./dom.js";
import { get, post } from "./api.js";
import { slotOf, swatch } from "./colours.js";
import { count } from "./format.js";

const LISTED = 200;

export class Corrections {
  constructor(open, draw, changed) {
    this.open = open;
    this.draw = draw; // the story anew, of what is known of it
    this.changed = changed;
    this.allowed = false;
    this.inForce = []; // numbers of the latest corrections in force
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
    this.inForce = status.in_force || [];
    const key = `${this.inForce.join()}/${this.allowed}`;
    if (key !== this.shown) { this.shown = key; this.list(); }
  }

  async send(body, told) {
    if (this.busy) return;
    this.busy = true;
    try {
      const made = await post("v1/corrections", { ...body, who: "page" });
      this.note = { text: told, undo: body.what === "undo" ? null : made.number };
      this.form = null;
    } catch (error) {
      this.note = { text: `Refused: ${error.message}.`, bad: true };
    }
    this.busy = false;
    this.changed();
  }

  undo(number) {
    return this.send({ what: "undo", undone: number }, `Correction ${number} is lifted: from now on it holds no more.`);
  }

  // ------------------------------------------------------------ of one story

  // The buttons of a story, or what is asked for in their place; and what came of the last.
  actions(told) {
    if (!this.allowed || !told.live) return this.said();
    const { label } = told;
    if (this.form && this.form.label === label) return [this.form.made, this.said()];
    const button = (name, what, help) => el("button", { type: "button", "data-correct": name, title: help, onclick: what }, name);
    return [
      el("div", { class: "actions", role: "group", "aria-label": `Correct this ${this.one}` },
        button("Rename", () => this.rename(told), "give it a title that stays"),
        told.template ? null : button("Merge…", () => this.choose(told, "Merge with", (to) => this.send({ what: "merge", stories: [label, to.label] }, `Merged with ${to.title}.`)), "its records and those of another stay together from now on"),
        told.template ? null : button("Keep apart…", () => this.choose(told, "Keep apart from", (to) => this.send({ what: "keep-apart", stories: [label, to.label] }, `Kept apart from ${to.title}.`)), "no record of it and of another are ever together"),
        told.template || told.pinned ? null : button("Pin", () => this.send({ what: "pin", stories: [label] }, "Pinned."), "it never becomes part of another, and never closes"),
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
    const send = (to) => this.send({ what: "move", stories: [to.label], seqs: [record.seq] }, `Moved to ${to.title}.`);
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
    const input = el("input", { type: "text", maxlength: "120", "aria-label": "New title", value: told.title });
    const made = el("form", { class: "asked" }, input, el("div", { class: "actions" }, el("button", { type: "submit", class: "sure-of-it" }, "Save"), this.cancel()));
    made.addEventListener("submit", (event) => {
      event.preventDefault();
      const title = input.value.trim();
      if (title) this.send({ what: "rename", stories: [told.label], title }, `It is called “${title}” from now on.`);
    });
    this.ask(told.label, made);
  }

  // Another story, out of those near it or found by words.
  choose(told, title, done) {
    const list = el("ul", { class: "near", "aria-label": "Stories to choose from" });
    const input = el("input", { type: "search", placeholder: "Search words or a number", "aria-label": title, autocomplete: "off" });
    const show = (rows) => fill(list, rows.filter((row) => row.label !== told.label).map((row) => el("li", {}, el("button", { type: "button", class: "link", "data-cluster": row.label, onclick: () => done(row) }, el("span", { class: swatch(slotOf(row.label)) }), row.title), el("span", { class: "faint" }, row.records === undefined ? "near it" : count(row.records)))));
    const find = async () => {
      const search = input.value.trim();
      const found = await get(`v1/stories?${new URLSearchParams({ search, least: 1, limit: 8 })}`).catch(() => null);
      if (found && search === input.value.trim()) show(found.stories);
    };
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(find, 150);
    });
    show(told.near || []);
    if (!told.near?.length) find();
    const made = el("form", { class: "asked" }, el("p", {}, title), input, list, el("div", { class: "actions" }, this.cancel()));
    made.addEventListener("submit", (event) => { event.preventDefault(); list.querySelector("button")?.click(); });
    this.ask(told.label, made);
  }

  // ------------------------------------------------------------ all of them

  async list() {
    const after = Math.max(0, (this.inForce.at(-1) ?? 0) - LISTED);
    const told = this.inForce.length ? await get(`v1/corrections?after=${after}&limit=${LISTED}`).catch(() => null) : { corrections: [] };
    if (!told) return;
    const rows = told.corrections.filter((row) => this.inForce.includes(row.number)).reverse();
    $("corrections").hidden = !rows.length;
    fill($("corrected"), rows.map((row) => el("li", {},
      el("span", {}, said(row), " ", el("span", { class: "faint" }, `${row.who}, ${row.when.slice(0, 16).replace("T", " ")}`)),
      this.allowed ? el("button", { type: "button", class: "link", "data-undo": row.number, "aria-label": `Undo correction ${row.number}`, onclick: () => this.undo(row.number) }, "Undo") : null)));
  }
}

// As the command that corrects has it.
function said({ what, stories, ids, seqs, title, hole, value }) {
  const named = [...(what === "split" ? [...stories, ...ids] : [...ids, ...stories]), ...seqs.map((seq) => `--seq ${seq}`)];
  const of = hole === null ? [] : ["hole", hole, ...(value === null ? [] : [value])];
  return [what, ...named.slice(0, 4), ...(named.length > 4 ? ["..."] : []), ...of, ...(title ? [title] : [])].join(" ");
}
