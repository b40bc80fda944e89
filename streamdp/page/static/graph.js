// The streamgraph: drawn by hand on a canvas, once a second.

import { $, el, fill, say } from "./dom.js";
import { colour, ink, isDark, onScheme, paint, swatch } from "./colours.js";
import { count, full, span, ticks, when } from "./format.js";
import { LINE, SIZE, beside, inside, wrapped } from "./names.js";
import { stack } from "./stack.js";

const FOOT = 26;
const SLIP = 8; // pixels that a hand moves in a click
export class Graph {
  constructor(open) {
    this.open = open;
    this.canvas = $("graph");
    this.context = this.canvas.getContext("2d");
    this.tip = $("tip");
    this.data = null;
    this.lit = null;
    this.at = null;
    this.buttons = new Map();
    this.withOthers = true;
    this.chosen = false; // whether somebody has said that others are drawn, or not
    this.waits = "";
    $("others").addEventListener("click", () => {
      this.withOthers = !this.withOthers;
      this.chosen = true;
      $("others").setAttribute("aria-pressed", String(this.withOthers));
      if (this.data) { this.stack(); this.draw(); }
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    onScheme(() => this.draw());
    const c = this.canvas;
    this.grip = null;
    c.addEventListener("pointermove", (e) => this.move(e));
    c.addEventListener("pointerleave", () => this.leave());
    c.addEventListener("pointerdown", (e) => this.take(e));
    c.addEventListener("pointerup", (e) => this.drop(e));
    c.addEventListener("pointercancel", () => { this.grip = null; this.draw(); });
    c.addEventListener("dblclick", () => this.stretched?.(null));
    c.addEventListener("blur", () => this.leave());
    c.addEventListener("keydown", (e) => this.key(e));
  }

  show(data) {
    this.data = data;
    const sum = (row) => row.reduce((a, b) => a + b, 0);
    const inside = data.bands.reduce((total, b) => total + sum(b.counts), 0);
    const whole = inside + sum(data.others);
    say($("drawn"), whole ? `${data.bands.length} of them, with ${Math.round((100 * inside) / whole)} % of the records` : "");
    if (!this.chosen) { // many small ones would leave no room for these
      this.withOthers = 2 * inside >= whole;
      $("others").setAttribute("aria-pressed", String(this.withOthers));
    }
    this.stack();
    this.draw();
    this.legend();
    const names = data.bands.map((b) => b.title).join("; ");
    const label = data.bands.length ? `Streamgraph of ${data.bands.length} stories: ${names}` : this.waits || "Streamgraph, empty still";
    if (this.canvas.getAttribute("aria-label") !== label) this.canvas.setAttribute("aria-label", label);
  }

  stack() {
    const { bands, others } = this.data;
    this.placed = null;
    this.stacked = stack(bands.map((b) => b.counts), this.withOthers ? others : others.map(() => 0));
  }

  draw() {
    const ratio = devicePixelRatio || 1;
    const w = this.canvas.clientWidth;
    const h = this.canvas.clientHeight;
    if (!w || !h) return;
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(h * ratio)) {
      this.canvas.width = Math.round(w * ratio);
      this.canvas.height = Math.round(h * ratio);
      this.placed = null;
    }
    const c = this.context;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, w, h);
    if (!this.data || !this.data.others.length) {
      c.font = "14px Inter, system-ui, sans-serif";
      c.textAlign = "center";
      c.fillStyle = isDark() ? "#a3a098" : "#67645e";
      wrapped(c, this.waits || "Nothing yet.", w - 40).forEach((line, i) => c.fillText(line, w / 2, h / 2 + 20 * i));
      c.textAlign = "start";
      return;
    }
    const n = this.data.others.length;
    const inner = h - FOOT;
    this.x = (j) => (n === 1 ? (j ? w : 0) : (j / (n - 1)) * w);
    this.y = (v) => inner / 2 - (v / this.stacked.top) * (inner - 8);
    this.axis(c, w, h);
    const dim = this.lit !== null;
    c.fillStyle = isDark() ? "#23272d" : "#efece7";
    for (const band of this.stacked.rest) { this.path(c, band); c.fill(); }
    c.lineWidth = 0.75;
    c.strokeStyle = isDark() ? "#17191d" : "#ffffff";
    this.data.bands.forEach((band, i) => {
      c.globalAlpha = dim && band.label !== this.lit ? 0.28 : 1;
      this.path(c, this.stacked.bands[i]);
      c.fillStyle = paint(c, band.slot);
      c.fill();
      c.stroke();
    });
    c.globalAlpha = 1;
    this.names(c, w, inner);
    this.scale(c, inner);
    if (this.grip) {
      c.fillStyle = isDark() ? "#e6e4df2e" : "#1d1f2124";
      c.fillRect(Math.min(this.grip.from, this.grip.to), 0, Math.abs(this.grip.to - this.grip.from), inner);
    }
    if (this.at !== null) {
      c.strokeStyle = isDark() ? "#e6e4df99" : "#1d1f2199";
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(this.x(this.at), 0);
      c.lineTo(this.x(this.at), inner);
      c.stroke();
    }
  }

  // The columns where a band is thick enough to be seen, and one more on both sides.
  extent(band) {
    const thick = band.low.map((low, j) => band.high[j] - low > this.stacked.top / 1000);
    const first = thick.indexOf(true);
    return first < 0 ? null : [Math.max(0, first - 1), Math.min(thick.length - 1, thick.lastIndexOf(true) + 1)];
  }

  path(c, band) {
    const n = band.low.length;
    if (n === 1) {
      c.beginPath();
      c.rect(this.x(0), this.y(band.high[0]), this.x(1) - this.x(0), this.y(band.low[0]) - this.y(band.high[0]));
      return;
    }
    c.beginPath();
    const range = this.extent(band);
    if (!range) return;
    const [first, last] = range;
    c.moveTo(this.x(first), this.y(band.high[first]));
    for (let j = first; j < last; j++) this.curve(c, band.high, j, j + 1);
    c.lineTo(this.x(last), this.y(band.low[last]));
    for (let j = last; j > first; j--) this.curve(c, band.low, j, j - 1);
    c.closePath();
  }

  // From one place to the next, without a corner at either.
  curve(c, values, from, to) {
    const n = values.length;
    const slope = (j) => (values[Math.min(n - 1, j + 1)] - values[Math.max(0, j - 1)]) / 2;
    const step = to - from;
    const third = (this.x(to) - this.x(from)) / 3;
    const leave = values[from] + (step * slope(from)) / 3;
    const reach = values[to] - (step * slope(to)) / 3;
    c.bezierCurveTo(this.x(from) + third, this.y(leave), this.x(to) - third, this.y(reach), this.x(to), this.y(values[to]));
  }

  axis(c, w, h) {
    const { start, width, others, axis } = this.data;
    const end = start + width * others.length;
    c.font = "12px Inter, system-ui, sans-serif";
    c.textBaseline = "alphabetic";
    const places = ticks(start, end, Math.max(2, Math.floor(w / 120)));
    c.fillStyle = isDark() ? "#a3a098" : "#67645e";
    c.strokeStyle = isDark() ? "#2b2f36" : "#e8e5df";
    c.lineWidth = 1;
    for (const at of places) {
      const x = ((at - start) / (end - start)) * w;
      c.beginPath();
      c.moveTo(x, 0);
      c.lineTo(x, h - FOOT + 5);
      c.stroke();
      const text = axis === "dates" ? when(at, end - start) : count(at);
      const half = c.measureText(text).width / 2;
      if (x - half > 2 && x + half < w - 2) c.fillText(text, x - half, h - 7);
    }
  }

  // How thick so many records are: a bar of a round number of them.
  scale(c, inner) {
    const { width, axis } = this.data;
    const most = (this.stacked.top * 0.3 * inner) / Math.max(inner - 8, 1);
    const unit = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
    const records = [5, 2, 1].map((m) => m * unit).find((n) => n <= most) || 1;
    const tall = Math.abs(this.y(records) - this.y(0));
    if (tall > inner / 2) return;
    const during = axis === "dates" ? ` in ${span(width)}` : axis === "records" ? ` of ${count(width)}` : "";
    const text = `${count(records)} record${records === 1 ? "" : "s"}${during}`;
    c.font = "12px Inter, system-ui, sans-serif";
    c.textBaseline = "middle";
    const [left, top] = [8.5, 8];
    c.fillStyle = isDark() ? "#191c20cc" : "#ffffffcc";
    c.fillRect(left + 6, top - 7, c.measureText(text).width + 6, 14);
    c.strokeStyle = c.fillStyle = isDark() ? "#a3a098" : "#67645e";
    c.lineWidth = 1;
    c.beginPath();
    for (const y of [top, top + tall]) { c.moveTo(left - 3, y); c.lineTo(left + 3, y); }
    c.moveTo(left, top);
    c.lineTo(left, top + tall);
    c.stroke();
    c.fillText(text, left + 9, top);
  }

  // In each band, and in the rest, its title; beside all of them where a band is too narrow for it.
  names(c, w, h) {
    c.font = `600 ${SIZE}px Inter, system-ui, sans-serif`;
    c.textBaseline = "middle";
    this.placed ||= this.place(c, { x: this.x, y: this.y, w, h });
    const quiet = isDark() ? "#a3a098" : "#67645e";
    for (const [band, found] of this.placed) {
      c.globalAlpha = this.lit !== null && band.label !== this.lit ? 0.3 : 1;
      c.fillStyle = band.label === null || found.to ? quiet : ink(colour(band.slot));
      if (found.to) {
        c.strokeStyle = quiet;
        c.lineWidth = 0.75;
        c.beginPath();
        c.moveTo(...found.from);
        c.lineTo(...found.to);
        c.stroke();
        c.fillRect(found.to[0] - 1.5, found.to[1] - 1.5, 3, 3);
      }
      found.lines.forEach((line, i) => c.fillText(line, found.x - c.measureText(line).width / 2, found.y + LINE * (i + 0.5 - found.lines.length / 2)));
      c.globalAlpha = 1;
    }
  }

  place(c, frame) {
    const { bands, rest } = this.stacked;
    const named = [...this.data.bands.map((band, i) => [band, bands[i]]), [{ title: "all others", label: null }, rest[0]]]
      .map(([band, edges]) => [band, edges, inside(c, band.title, edges, frame)]);
    const taken = [[0, 0, 190, 20], [0, 0, 14, frame.h / 3]]; // where it says how thick so many records are
    const thickness = ({ low, high }) => Math.max(...low.map((v, j) => high[j] - v));
    for (const each of named.filter(([band, , found]) => !found && band.label !== null).sort((a, b) => thickness(b[1]) - thickness(a[1]))) {
      each[2] = beside(c, each[0].title, each[1], rest, frame, taken);
    }
    return named.filter(([, , found]) => found).map(([band, , found]) => [band, found]);
  }

  move(event) {
    if (!this.data || !this.y) return;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (this.grip) this.grip.to = Math.max(0, Math.min(box.width, x));
    const n = this.data.others.length;
    this.at = Math.max(0, Math.min(n - 1, Math.round((x / box.width) * (n - 1))));
    const i = this.stacked.bands.findIndex((b) => y <= this.y(b.low[this.at]) && y >= this.y(b.high[this.at]));
    if (i >= 0) this.at = this.filled(this.data.bands[i].counts, this.at);
    this.light(i < 0 ? null : this.data.bands[i].label);
    this.describe(x, y, i, box.width);
  }

  // A band is drawn from bin to bin: where one has no record, the fuller one beside it is meant.
  filled(counts, at) {
    if (counts[at]) return at;
    const beside = [at - 1, at + 1].filter((j) => counts[j]);
    return beside.length ? beside.reduce((a, b) => (counts[b] > counts[a] ? b : a)) : at;
  }

  take(event) {
    if (!this.data || event.button !== 0) return;
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    this.grip = { from: x, to: x };
    this.canvas.setPointerCapture(event.pointerId);
  }

  // A click opens the cluster that is pointed at; what was drawn over is the stretch of time to look at.
  drop(event) {
    const grip = this.grip;
    this.grip = null;
    if (!grip || !this.data) return;
    this.move(event);
    const { start, width, others } = this.data;
    const at = (x) => start + (x / this.canvas.clientWidth) * width * others.length;
    if (Math.abs(grip.to - grip.from) > SLIP) this.stretched?.([at(Math.min(grip.from, grip.to)), at(Math.max(grip.from, grip.to))]);
    else if (this.lit !== null) this.open(this.lit);
  }

  describe(x, y, i, w) {
    const { start, width, bands, others } = this.data;
    const from = start + this.at * width;
    const time = this.data.axis === "dates" ? full(from) : `${this.data.axis === "records" ? "record " : ""}${count(from)}`;
    const head = i < 0 ? "other stories" : bands[i].title;
    const records = i < 0 ? others[this.at] : bands[i].counts[this.at];
    fill(this.tip, el("strong", {}, i >= 0 && el("span", { class: swatch(bands[i].slot) }), head), el("span", {}, `${count(records)} records`), el("span", { class: "faint" }, time));
    this.tip.hidden = false;
    const room = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, w - room - 4))}px`;
    this.tip.style.top = `${Math.max(4, y - 70)}px`;
    return `${head}: ${count(records)} records, ${time}`;
  }

  leave() {
    this.at = null;
    this.tip.hidden = true;
    this.light(null, true);
  }

  light(cluster, always = false) {
    if (cluster !== this.lit || always) {
      this.buttons.forEach((b, label) => b.classList.toggle("lit", label === cluster));
    }
    this.lit = cluster;
    this.draw();
  }

  key(event) {
    if (!this.data || !this.data.bands.length) return;
    const n = this.data.others.length;
    const order = this.data.bands.map((b) => b.label);
    let i = order.indexOf(this.lit);
    if (this.at === null) this.at = n - 1;
    if (event.key === "ArrowLeft") this.at = Math.max(0, this.at - 1);
    else if (event.key === "ArrowRight") this.at = Math.min(n - 1, this.at + 1);
    else if (event.key === "ArrowUp") i = Math.min(order.length - 1, i + 1);
    else if (event.key === "ArrowDown") i = i < 0 ? order.length - 1 : Math.max(0, i - 1);
    else if (event.key === "Enter" && i >= 0) { this.open(order[i]); return; }
    else if (event.key === "+" || event.key === "-") { this.zoomed?.(event.key === "+"); return; }
    else if (event.key === "Escape") { this.leave(); return; }
    else return;
    event.preventDefault();
    if (i < 0) i = 0;
    this.light(order[i]);
    const band = this.stacked.bands[i];
    const y = (this.y(band.low[this.at]) + this.y(band.high[this.at])) / 2;
    say($("graph-said"), this.describe(this.x(this.at), y, i, this.canvas.clientWidth));
  }

  legend() {
    const list = $("legend");
    const wanted = new Set(this.data.bands.map((b) => b.label));
    for (const [label, button] of this.buttons) if (!wanted.has(label)) { button.parentNode.remove(); this.buttons.delete(label); }
    for (const band of this.data.bands) {
      let button = this.buttons.get(band.label);
      if (!button) {
        button = el("button", { type: "button", "data-cluster": band.label, onclick: () => this.open(band.label) }, el("span", { class: swatch(band.slot) }), el("span", { class: "name" }), el("span", { class: "grows", title: "grows fast" }));
        button.addEventListener("pointerenter", () => this.light(band.label));
        button.addEventListener("pointerleave", () => this.light(null));
        this.buttons.set(band.label, button);
        list.append(el("li", {}, button));
      }
      say(button.children[1], band.title);
      button.title = band.title;
      say(button.children[2], band.why === "growing" ? "▲" : "");
    }
  }
}
