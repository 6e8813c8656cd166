// The order of dmlgpu's results in JavaScript, for one tile: up to 4096 elements of float32 or int32. The specification
// is dmlgpu/reference/order.py; this is written apart from it, and a test compares the two.

const RUN = 16;
const BLOCK = 256;
const SMALLEST = 2 ** -126;

// Products know no subnormal numbers in their left folds: what is up to the smallest normal number is a zero.
const flushed = (x) => (Math.abs(x) <= SMALLEST ? (x < 0 || Object.is(x, -0) ? -0 : 0) : x);

export const COMBINE = {
  float32: { sum: (a, b) => Math.fround(a + b), product: (a, b) => Math.fround(a * b) },
  int32: { sum: (a, b) => (a + b) | 0, product: Math.imul },
};

// Hillis and Steele's scan: the values after each of its steps, the first of which are the given ones.
export function hillisSteele(values, combine) {
  const steps = [values];
  for (let stride = 1; stride < RUN; stride *= 2) {
    const last = steps[steps.length - 1];
    steps.push(last.map((value, i) => (i >= stride ? combine(last[i - stride], value) : value)));
  }
  return steps;
}

function leftFold(values, combine) {
  const results = [];
  for (const value of values) results.push(results.length ? combine(results[results.length - 1], value) : value);
  return results;
}

function groups(values, size) {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, i) => values.slice(i * size, (i + 1) * size));
}

// Returns the inclusive scan of a row in traversal order.
export function scanTile(row, type, operator) {
  const isProduct = type === "float32" && operator === "product";
  const base = COMBINE[type][operator];
  let least = Infinity;
  const seen = (x) => {
    least = Math.min(least, Math.abs(x));
    return x;
  };
  const combine = isProduct ? (a, b) => seen(base(seen(a), seen(b))) : base;
  const results = [];
  let before; // the fold of the totals of the blocks before
  for (const block of groups(row, BLOCK)) {
    const runs = groups(block, RUN).map((run) => leftFold(run, combine));
    const totals = hillisSteele(runs.map((run) => run[run.length - 1]), combine).pop();
    runs.forEach((run, j) => {
      let carry = before;
      if (j > 0) carry = before === undefined ? totals[j - 1] : combine(before, totals[j - 1]);
      results.push(...(carry === undefined ? run : run.map((value) => combine(carry, value))));
    });
    const total = totals[totals.length - 1];
    before = before === undefined ? total : combine(before, total);
  }
  if (isProduct) row.forEach(seen);
  const isExceptional = type === "float32" && (results.some((x) => !Number.isFinite(x)) || least < 2 * SMALLEST);
  if (!isExceptional) return results;
  if (!isProduct) return leftFold(row, base);
  return leftFold(row, (a, b) => flushed(base(flushed(a), flushed(b))));
}

// Returns the row's cumulative sum or product.
export function cumulative(row, { type, operator, exclusive, decreasing }) {
  const inOrder = decreasing ? row.slice().reverse() : row;
  let results = scanTile(inOrder, type, operator);
  if (exclusive) results = [operator === "sum" ? 0 : 1, ...results.slice(0, -1)];
  return decreasing ? results.reverse() : results;
}

// Returns a number rounded to an integer.
export function rounded(x, mode) {
  if (!Number.isFinite(x) || Math.abs(x) >= 2 ** 23) return x;
  const whole = Math.floor(Math.abs(x));
  const rest = Math.abs(x) - whole;
  let up = false;
  if (mode === "half_even") up = rest > 0.5 || (rest === 0.5 && whole % 2 === 1);
  if (mode === "half_away") up = rest >= 0.5;
  const magnitude = whole + (up ? 1 : 0);
  return x < 0 || Object.is(x, -0) ? -magnitude : magnitude;
}
