// Where the titles of bands stand: in their bands, else beside all of them with a line to the band.

export const SIZE = 11;
export const LINE = 13;

// A text in lines no wider than this.
export function wrapped(c, text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && c.measureText(longer).width > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

const widest = (c, lines) => Math.max(...lines.map((line) => c.measureText(line).width));

// The columns under a stretch of pixels.
function under(from, to, n, w) {
  return [Math.max(0, Math.floor((from / w) * (n - 1))), Math.ceil((to / w) * (n - 1)) + 1];
}

// In a band, its title in as few lines as there is room for, or the first words of it.
export function inside(c, title, { low, high }, { x: across, y: up, w }) {
  const words = title.split(" ");
  const tall = (j) => up(low[j]) - up(high[j]);
  const thickest = low.map((_, j) => j).filter((j) => tall(j) > LINE).sort((a, b) => tall(b) - tall(a)).slice(0, 24);
  for (let take = words.length; thickest.length && take >= Math.min(2, words.length); take--) {
    const text = words.slice(0, take).join(" ") + (take < words.length ? "…" : "");
    for (const wide of [320, 200, 130, 95, 70]) {
      const lines = wrapped(c, text, wide);
      const half = widest(c, lines) / 2 + 4;
      for (const j of thickest) {
        const x = Math.min(Math.max(across(j), half), w - half);
        const columns = under(x - half, x + half, low.length, w);
        const [floor, ceiling] = [Math.max(...low.slice(...columns)), Math.min(...high.slice(...columns))].map(up);
        if (floor - ceiling > LINE * lines.length) return { lines, x, y: (floor + ceiling) / 2 };
      }
    }
  }
  return null;
}

// Above or below all bands, near where this one is thickest, and the place in it that a line points to.
// What is taken are boxes [left, top, right, bottom]; those of this title are added.
export function beside(c, title, { low, high }, [below, above], { x: across, y: up, w, h }, taken) {
  const tall = low.map((_, j) => up(low[j]) - up(high[j]));
  const j = tall.indexOf(Math.max(...tall));
  if (tall[j] < 2) return null;
  const to = [across(j), up((low[j] + high[j]) / 2)];
  const whole = wrapped(c, title, 130);
  const lines = whole.length > 3 ? [...whole.slice(0, 2), `${whole[2]}…`] : whole;
  const [half, tallness] = [widest(c, lines) / 2 + 3, LINE * lines.length];
  const free = ([l, t, r, b]) => taken.every(([left, top, right, bottom]) => r < left || l > right || b < top || t > bottom);
  for (const gap of [10, 40, 70]) {
    for (const shift of [0, -45, 45, -90, 90, -135, 135]) {
      const x = Math.min(Math.max(to[0] + shift, half), w - half);
      const columns = under(x - half, x + half, low.length, w);
      const roof = up(Math.max(...above.high.slice(...columns))) - gap;
      const floor = up(Math.min(...below.low.slice(...columns))) + gap;
      for (const [y, end] of [[roof - tallness / 2, roof], [floor + tallness / 2, floor]].sort((a, b) => Math.abs(a[1] - to[1]) - Math.abs(b[1] - to[1]))) {
        const box = [x - half, y - tallness / 2, x + half, y + tallness / 2];
        const line = Array.from({ length: 30 }, (_, i) => i / 29).map((s) => [x + s * (to[0] - x), end + s * (to[1] - end)]);
        const dots = line.map(([a, b]) => [a - 1, b - 1, a + 1, b + 1]);
        if (box[1] < 0 || box[3] > h || ![box, ...dots].every(free)) continue;
        taken.push(box, ...dots);
        return { lines, x, y, from: [x, end], to };
      }
    }
  }
  return null;
}
