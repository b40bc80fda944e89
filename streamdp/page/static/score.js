// Where a text would go: weighed by the run itself, between two batches, and never learned.

import { $, el, fill } from "./dom.js";
import { post } from "./api.js";
import { colour, slotOf, swatch } from "./colours.js";
import { digits, percent } from "./format.js";

export function scoring(open) {
  const form = $("score");
  const text = $("text");
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); form.requestSubmit(); }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!text.value.trim()) { fill($("scored")); return; }
    form.classList.add("busy");
    try {
      show(await post("v1/where", { text: text.value }), open);
    } catch (error) {
      fill($("scored"), el("p", { class: "faint" }, error.message));
    }
    form.classList.remove("busy");
  });
}

function show(told, open) {
  if (told.error) { fill($("scored"), el("p", { class: "faint" }, `It cannot be tried: ${told.error}.`)); return; }
  fill($("scored"), el("ol", { class: "candidates" }, told.candidates.map((c) => {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${Math.max(0.5, 100 * c.probability)}%`;
    const slot = slotOf(c.label);
    if (slot !== null) bar.style.background = colour(slot);
    const name = c.label === null ? el("span", { class: "name" }, "something new") : el("button", { type: "button", class: "link name", onclick: () => open(c.label) }, el("span", { class: swatch(slot) }), c.title ?? `number ${c.label}`);
    const words = c.words.length ? el("p", { class: "because" }, "because of: ", c.words.map(([w, nats], i) => [i ? ", " : "", el("b", { title: `speaks for it by a factor of ${digits(Math.exp(nats))}` }, w)])) : null;
    return el("li", {}, el("div", { class: "row" }, name, el("span", { class: "sure" }, percent(c.probability))), el("span", { class: "track" }, bar), words);
  })));
}
