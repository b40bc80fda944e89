// Elements. Whatever comes from records is set as text, never read as markup.

import { ago, count, full, isDate } from "./format.js";

export const $ = (id) => document.getElementById(id);

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  add(made, children);
  return made;
}

// A moment as so long ago, the exact one on hover; of records without times, the number of a record.
export function moment(t, seq) {
  if (t === null || t === undefined) return el("time", {}, `no. ${count(seq)}`);
  return el("time", { title: full(t), "data-time": isDate(t) ? t : null }, ago(t));
}

export function older() {
  for (const each of document.querySelectorAll("time[data-time]")) say(each, ago(Number(each.dataset.time)));
}

function add(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

export function fill(parent, ...children) {
  parent.replaceChildren();
  add(parent, children);
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
