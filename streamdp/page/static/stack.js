// From counts to the edges of bands. The many small clusters are half above and half below the others.

function smoothed(row, width) {
  const n = row.length;
  const reach = Math.min(Math.ceil(3 * width), n - 1);
  const weights = Array.from({ length: reach + 1 }, (_, i) => Math.exp(-0.5 * (i / width) ** 2));
  return row.map((_, i) => {
    let total = 0;
    let weight = 0;
    for (let d = -reach; d <= reach; d++) {
      if (i + d < 0 || i + d >= n) continue;
      total += weights[Math.abs(d)] * row[i + d];
      weight += weights[Math.abs(d)];
    }
    return total / weight;
  });
}

// Bands as {low, high} of heights by column, and the largest height of all.
export function stack(rows, others) {
  const width = rows.length && others.length > 24 ? 1.4 : 0.6;
  const smooth = [...rows, others].map((row) => smoothed(row, width));
  const rest = smooth.pop();
  const n = others.length;
  const totals = Array.from({ length: n }, (_, j) => smooth.reduce((sum, row) => sum + row[j], rest[j]));
  const top = Math.max(1e-9, ...totals);
  let base = totals.map((total, j) => -total / 2 + rest[j] / 2);
  const below = { low: totals.map((total) => -total / 2), high: base.slice() };
  const bands = smooth.map((row) => {
    const low = base;
    const high = low.map((value, j) => value + row[j]);
    base = high;
    return { low, high };
  });
  const above = { low: base, high: totals.map((total) => total / 2) };
  return { bands, rest: [below, above], top };
}
