// Softened from Okabe & Ito (2008), whom the colour-blind can tell apart. A look is a colour and a texture.

const dark = matchMedia("(prefers-color-scheme: dark)");
export const isDark = () => dark.matches;
export const onScheme = (tell) => dark.addEventListener("change", tell);

const LIGHT = ["#3d7eb8", "#e3a23c", "#2e9b78", "#c77da6", "#6db7e0", "#cf6a3a", "#cdb834", "#5b5ea6"];
const DARK = ["#5a97cf", "#e0a548", "#3fae8a", "#cf8bb2", "#7cc0e6", "#d97b4d", "#d6c44e", "#8386cc"];

export const colour = (slot) => (slot === null || slot === undefined ? "" : (isDark() ? DARK : LIGHT)[slot % 8]);
export const texture = (slot) => (slot === null || slot === undefined ? 0 : Math.floor(slot / 8) % 3);

// The class of a small square in the look of a cluster.
export const swatch = (slot) => (slot === null || slot === undefined ? "swatch none" : `swatch c${slot % 8} t${texture(slot)}`);

// The look of a story, as far as this page was told of it.
const slots = new Map();
export const slotOf = (label) => slots.get(label) ?? null;
export function looks(told) {
  for (const [label, slot] of told) if (slot !== null) slots.set(Number(label), slot);
}

export function ink(hex) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((v) => (v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.22 ? "#14161a" : "#ffffff";
}

const patterns = new Map();

export function paint(context, slot) {
  const base = colour(slot);
  const kind = texture(slot);
  if (!kind) return base;
  const ratio = devicePixelRatio || 1;
  const key = `${base}/${kind}/${ratio}`;
  if (!patterns.has(key)) {
    const size = 8;
    const tile = document.createElement("canvas");
    tile.width = tile.height = size * ratio;
    const c = tile.getContext("2d");
    c.scale(ratio, ratio);
    c.fillStyle = base;
    c.fillRect(0, 0, size, size);
    c.strokeStyle = c.fillStyle = "rgba(255,255,255,.38)";
    if (kind === 1) {
      c.lineWidth = 1.6;
      c.beginPath();
      for (const d of [-size, 0, size]) { c.moveTo(d, size); c.lineTo(d + size, 0); }
      c.stroke();
    } else {
      c.beginPath();
      c.arc(2, 2, 1.2, 0, 7);
      c.arc(6, 6, 1.2, 0, 7);
      c.fill();
    }
    const made = context.createPattern(tile, "repeat");
    made.setTransform(new DOMMatrix().scale(1 / ratio));
    patterns.set(key, made);
  }
  return patterns.get(key);
}
