// Numbers and times for people. Times are UTC.

const whole = new Intl.NumberFormat("en");
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (n) => String(n).padStart(2, "0");

export const count = (n) => whole.format(Math.round(n));

export function short(n) {
  if (n >= 1e6) return `${(n / 1e6).toFixed(n >= 1e7 ? 0 : 1)}M`;
  if (n >= 1e4) return `${(n / 1e3).toFixed(n >= 1e5 ? 0 : 1)}k`;
  return count(n);
}

export const digits = (n) => String(Number(n.toPrecision(3)));

export function rate(n) {
  if (!n) return "–";
  if (n >= 10) return short(n);
  return n >= 0.95 ? n.toFixed(1) : n.toFixed(2);
}

export const percent = (p) => (p === null ? "" : p > 0.995 && p < 1 ? ">99 %" : p > 0 && p < 0.005 ? "<1 %" : `${Math.round(100 * p)} %`);

export const share = (p) => `${(100 * p).toFixed(1)} %`;

const CALENDAR = 1e8;
const NEVER = 253e9;
export const isDate = (t) => t >= CALENDAR && t < NEVER;

export function when(t, span = 0) {
  if (t === null || t === undefined) return "";
  if (!isDate(t)) return count(t);
  const d = new Date(t * 1000);
  const day = `${d.getUTCDate()} ${months[d.getUTCMonth()]}`;
  const clock = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
  if (span > 300 * 86400) return `${months[d.getUTCMonth()]} ${d.getUTCFullYear()}`;
  if (span > 4 * 86400) return day;
  if (span && span < 300) return `${clock}:${two(d.getUTCSeconds())}`;
  if (span && span < 86400) return clock;
  return `${day}, ${clock}`;
}

export const full = (t) => (isDate(t) ? `${new Date(t * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC` : count(t));

export function span(seconds) {
  if (seconds >= 2 * 86400) return `${(seconds / 86400).toFixed(seconds < 864000 ? 1 : 0)} d`;
  if (seconds >= 7200) return `${(seconds / 3600).toFixed(seconds < 36000 ? 1 : 0)} h`;
  if (seconds >= 120) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds)} s`;
}

// How long before the stream's newest record: "2 h ago". What is older than a month, or no date, as it is.
let newest = null;
export const at = (time) => { newest = time; };

export function ago(t) {
  const past = newest - t;
  if (newest === null || !isDate(t) || past > 30 * 86400) return when(t, past > 300 * 86400 ? past : 0);
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([each]) => past >= 2 * each) || [0];
  return size ? `${Math.floor(past / size)} ${unit} ago` : "now";
}

export const now = (row) => (row.now ? count(row.now) : "–");

export function trend(row) {
  const more = row.now - row.before;
  return more > 0 ? `▲ ${count(more)}` : more < 0 ? `▼ ${count(-more)}` : row.now ? "=" : "–";
}

// Steps of an axis: about so many, at round places.
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 345600, 604800, 1209600, 2592000, 7776000, 15552000, 31536000];

export function ticks(low, high, most) {
  const wanted = (high - low) / Math.max(most, 1);
  let step = isDate(low) ? STEPS.find((s) => s >= wanted) : undefined;
  if (!step) {
    const unit = 10 ** Math.floor(Math.log10(wanted || 1));
    step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= wanted * 0.999) || unit * 10;
  }
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}
