// Runs what the reader types, and shows results, plan and WGSL.

import { content, planOfRow, readShader } from "./data.js";
import { cumulative, rounded } from "./order.js";

const { longest, shapes, types, plans } = content.playground;
const A_LINE = 8;
const ROUNDED_STEP = 64;
const field = (id) => document.getElementById(id);
const ARRAYS = { float32: Float32Array, int32: Int32Array };
const WORDS = { nan: NaN, inf: Infinity, infinity: Infinity };

export function parseNumbers(text, type) {
  const words = text.split(/[\s,;]+/).filter(Boolean);
  return words.map((word, i) => {
    const bare = word.toLowerCase().replace(/^[+-]/, "");
    let value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(word) ? Number(word) : undefined;
    if (type === "float32" && bare in WORDS) value = word.startsWith("-") ? -WORDS[bare] : WORDS[bare];
    if (value === undefined) throw new Error(`number ${i + 1} is ${word}, which is no number of ${type}`);
    if (type === "int32" && (!Number.isInteger(value) || value < -(2 ** 31) || value >= 2 ** 31)) {
      throw new Error(`number ${i + 1} is ${word}, and int32 holds whole numbers from -2147483648 to 2147483647`);
    }
    return type === "float32" ? Math.fround(value) : value;
  });
}

function sameBits(one, other) {
  return one.every((value, i) => Object.is(value, other[i]));
}

// Shows numbers as a row, several a line with the position of the first, or as nested brackets.
export function render(values, shape) {
  const texts = values.map((value) => (Object.is(value, -0) ? "-0" : String(value)));
  const width = Math.max(...texts.map((text) => text.length));
  const padded = texts.map((text) => text.padStart(width));
  if (shape.length === 1) {
    const lines = [];
    for (let i = 0; i < padded.length; i += A_LINE) {
      lines.push(`${String(i).padStart(5)}:  ${padded.slice(i, i + A_LINE).join("  ")}`);
    }
    return lines.join("\n");
  }
  const nest = (start, sizes, depth) => {
    if (sizes.length === 1) return `[${padded.slice(start, start + sizes[0]).join("  ")}]`;
    const step = sizes.slice(1).reduce((a, b) => a * b, 1);
    const parts = Array.from({ length: sizes[0] }, (_, i) => nest(start + i * step, sizes.slice(1), depth + 1));
    return `[${parts.join(`\n${" ".repeat(depth + 1)}`)}]`;
  };
  return nest(0, shape, 0);
}

// Applies a function to each slice of an array along an axis, and returns an array of the same shape.
export function alongAxis(values, shape, axis, apply) {
  const stride = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const results = values.slice();
  for (let start = 0; start < values.length; start += 1) {
    if (Math.floor(start / stride) % shape[axis]) continue;
    const places = Array.from({ length: shape[axis] }, (_, i) => start + i * stride);
    apply(places.map((place) => values[place])).forEach((value, i) => {
      results[places[i]] = value;
    });
  }
  return results;
}

export class Playground {
  constructor(steps) {
    this.steps = steps;
    this.runner = null;
    field("longest").textContent = longest;
    for (const type of types) field("type").append(new Option(type));
    for (const shape of shapes) field("shape").append(new Option(shape.join(" × "), shape.join("x")));
    field("playground").addEventListener("submit", (event) => {
      event.preventDefault();
      this.compute();
    });
    field("playground").addEventListener("change", () => this.adapt());
    field("numbers").addEventListener("input", () => this.read());
    field("ramp").addEventListener("click", () => this.fill((i) => i + 1));
    field("random").addEventListener("click", () => this.fill(() => this.random()));
    this.adapt();
  }

  // Lets the playground compute on a device.
  open(runner) {
    this.runner = runner;
    field("compute").disabled = false;
  }

  options() {
    const isRow = field("shape").value === "row";
    return {
      operator: field("operator").value,
      type: field("type").value,
      isRow,
      shape: isRow ? null : field("shape").value.split("x").map(Number),
      axis: Number(field("axis").value || 0),
      decreasing: field("direction").value === "decreasing",
      exclusive: field("exclusive").checked,
      mode: field("mode").value,
    };
  }

  // Shows the fields that the operator has, and the axes that the shape has.
  adapt() {
    const { operator, shape } = this.options();
    const rounds = operator === "round";
    for (const id of ["axis", "direction", "exclusive"]) field(id).closest("label").hidden = rounds;
    field("mode").closest("label").hidden = !rounds;
    for (const option of field("type").options) option.disabled = rounds && option.value !== "float32";
    if (rounds) field("type").value = "float32";
    const axes = shape ? shape.length : 1;
    if (field("axis").options.length !== axes) {
      field("axis").replaceChildren(...Array.from({ length: axes }, (_, i) => new Option(i)));
      field("axis").value = axes - 1;
    }
    const needed = shape ? shape.reduce((a, b) => a * b, 1) : null;
    if (needed && this.count() !== needed) this.fill((i) => i + 1);
    this.read();
  }

  count() {
    return field("numbers").value.split(/[\s,;]+/).filter(Boolean).length;
  }

  random() {
    const { type, operator } = this.options();
    if (type === "int32") return Math.floor(Math.random() * 199) - 99;
    if (operator === "product") return Number((0.9 + Math.random() * 0.2).toFixed(4));
    return Number((Math.random() * 20 - 10).toFixed(operator === "round" ? 1 : 4));
  }

  fill(value) {
    const { shape } = this.options();
    const count = shape ? shape.reduce((a, b) => a * b, 1) : Math.max(16, Math.min(longest, this.count()));
    field("numbers").value = Array.from({ length: count }, (_, i) => value(i)).join(" ");
    this.read();
  }

  // Returns the numbers, or null where they cannot be computed with, and says why.
  read() {
    const { type, operator, shape } = this.options();
    let numbers = null;
    let message = "";
    try {
      numbers = parseNumbers(field("numbers").value, type);
      const needed = shape ? shape.reduce((a, b) => a * b, 1) : null;
      if (!numbers.length) message = "Type a number.";
      else if (numbers.length > longest) message = `There are ${numbers.length} numbers, and a row holds ${longest}: leave some out.`;
      else if (needed && numbers.length !== needed) message = `The shape holds ${needed} numbers, and there are ${numbers.length}.`;
    } catch (error) {
      message = `${error.message}.`;
      message = message[0].toUpperCase() + message.slice(1);
    }
    field("input-error").textContent = message;
    field("numbers").setAttribute("aria-invalid", String(message !== ""));
    if (message) return null;
    this.steps.take(numbers, type, operator);
    return numbers;
  }

  planOf(options, count) {
    const { operator, type, isRow, mode, axis, exclusive, decreasing } = options;
    const shape = isRow ? "row" : options.shape.join("x");
    if (operator === "round") {
      const plan = plans[`${type}/round/${mode}/${shape}`];
      return isRow ? planOfRow(plan, Math.ceil(count / ROUNDED_STEP) * ROUNDED_STEP) : plan;
    }
    const order = `${exclusive ? "exclusive" : "inclusive"}/${decreasing ? "decreasing" : "increasing"}`;
    const plan = plans[`${type}/${operator}/${order}/${shape}/${axis}`];
    return isRow ? planOfRow(plan, count) : plan;
  }

  async compute() {
    const numbers = this.read();
    if (!numbers) {
      field("numbers").focus();
      return;
    }
    const options = this.options();
    const shape = options.shape ?? [numbers.length];
    const plan = this.planOf(options, numbers.length);
    const input = new ARRAYS[options.type](plan.buffers.input / 4);
    input.set(numbers);
    try {
      const bytes = await this.runner.run(plan, { input });
      const results = Array.from(new ARRAYS[options.type](bytes)).slice(0, numbers.length);
      const expected = this.expected(numbers, shape, options);
      const agrees = sameBits(expected, results);
      field("agrees").textContent = agrees
        ? "Every bit is what the order gives when this page's JavaScript computes it on the CPU."
        : "These are not the bits that the order gives when this page's JavaScript computes it on the CPU.";
      field("agrees").className = agrees ? "" : "error";
      field("results").textContent = render(results, shape);
    } catch (error) {
      field("agrees").textContent = `This GPU could not compute it: ${error.message}`;
      field("agrees").className = "error";
      field("results").textContent = "";
    }
    await this.explain(plan);
    field("played").hidden = false;
  }

  expected(numbers, shape, options) {
    if (options.operator === "round") return numbers.map((x) => rounded(x, options.mode));
    return alongAxis(numbers, shape, options.axis, (row) => cumulative(row, options));
  }

  async explain(plan) {
    field("plan").textContent = JSON.stringify(plan, null, 1).replace(/\[\s+([-\d,\s]+?)\s+\]/g, (_, list) => `[${list.replace(/\s+/g, " ")}]`);
    const names = [...new Set(plan.passes.map(({ shader }) => shader))];
    const blocks = await Promise.all(
      names.map(async (name) => {
        const block = document.createElement("details");
        const summary = document.createElement("summary");
        summary.textContent = `The WGSL of ${name.split(".")[0]}`;
        const text = document.createElement("pre");
        text.tabIndex = 0;
        text.textContent = await readShader(name);
        block.append(summary, text);
        return block;
      }),
    );
    field("wgsl").replaceChildren(...blocks);
  }
}
