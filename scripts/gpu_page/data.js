// Reads what scripts/gpu_page.py put into the page.

export const content = JSON.parse(document.getElementById("data").textContent);

export async function readShader(name) {
  return content.shaders[name].map((piece) => content.pieces[piece]).join("\n\n");
}

const inputs = new Map();

export function readInput(number) {
  if (!inputs.has(number)) {
    inputs.set(number, Uint8Array.from(atob(content.inputs[number]), (character) => character.charCodeAt(0)));
  }
  return inputs.get(number);
}

// Returns a plan whose numbers have grown so many times: as `at_length` of scripts/gpu_page.py.
export function atLength(small, growth, more) {
  if (growth === null || growth === undefined) return small;
  if (Array.isArray(small)) return small.map((part, i) => atLength(part, growth[i], more));
  if (typeof small === "object") {
    return Object.fromEntries(Object.entries(small).map(([key, part]) => [key, atLength(part, growth[key], more)]));
  }
  const grown = (small + growth * more) % 2 ** 32;
  return grown < 0 ? grown + 2 ** 32 : grown;
}

// Returns the plan of a row, or null where the page has none for its length.
export function planOfRow(ranges, length) {
  for (const { from, to, step, plan, growth } of ranges) {
    if (from <= length && length <= to && (length - from) % step === 0) {
      return atLength(plan, growth, (length - from) / step);
    }
  }
  return null;
}
