// Runs the cases, compares digests with the reference's, and measures speed.

import { content, readInput } from "./data.js";

const STRAY = 0xa5;

// Returns the SHA-256 of a result, with every NaN as one pattern: as dmlgpu.conformance.digest.
export async function digestOf(bytes, type) {
  const copy = bytes.slice();
  if (type === "float16") {
    const words = new Uint16Array(copy.buffer);
    for (let i = 0; i < words.length; i += 1) if ((words[i] & 0x7fff) > 0x7c00) words[i] = 0x7e00;
  } else if (type === "float32") {
    const words = new Uint32Array(copy.buffer);
    for (let i = 0; i < words.length; i += 1) if ((words[i] & 0x7fffffff) > 0x7f800000) words[i] = 0x7fc00000;
  } else if (type === "float64") {
    const words = new BigUint64Array(copy.buffer);
    const infinity = 0x7ff0000000000000n;
    for (let i = 0; i < words.length; i += 1) {
      if ((words[i] & 0x7fffffffffffffffn) > infinity) words[i] = 0x7ff8000000000000n;
    }
  }
  const hash = await crypto.subtle.digest("SHA-256", copy);
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Returns a promise of what is wrong with the device's result of a case, or null.
export async function failureOf(runner, { plan, contents, result, result_type: type, digest }) {
  const [start, end] = result;
  const before = {};
  for (const [name, number] of Object.entries(contents)) before[name] = readInput(number);
  before.output ??= new Uint8Array(plan.buffers.output).fill(STRAY);
  let after;
  try {
    after = new Uint8Array(await runner.run(plan, before));
  } catch (error) {
    return `error: ${error.message}`;
  }
  for (let i = 0; i < after.length; i += 1) {
    if ((i < start || i >= end) && after[i] !== before.output[i]) return `byte ${i} beside the results was written`;
  }
  const found = await digestOf(after.slice(start, end), type);
  return found === digest ? null : `the digest is ${found}, and the reference's is ${digest}`;
}

// Compiles the pipelines of the cases, several at a time. What does not compile is found when its case runs.
export async function compile(runner, cases, report) {
  const passes = new Map();
  for (const { plan } of cases) {
    for (const { shader, constants, bindings } of plan.passes) {
      const types = bindings.map(({ binding, type }) => ({ binding, type }));
      passes.set(JSON.stringify([shader, constants, types]), { shader, constants, bindings });
    }
  }
  const waiting = [...passes.values()];
  let done = 0;
  const worker = async () => {
    while (waiting.length) {
      try {
        await runner.pipeline(waiting.shift());
      } catch {
        // The case says it, within its error scope.
      }
      done += 1;
      report(done, passes.size);
    }
  };
  await Promise.all(Array.from({ length: Math.min(8, navigator.hardwareConcurrency || 2) }, worker));
}

const ROUNDS = 5;

// Returns the least seconds of several rounds of the same work, each long enough to be measured.
async function leastSeconds(device, encode) {
  let least = Infinity;
  let repeats = 1;
  for (let round = 0; round < ROUNDS; round += 1) {
    const encoder = device.createCommandEncoder();
    for (let i = 0; i < repeats; i += 1) await encode(encoder);
    const start = performance.now();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    const seconds = (performance.now() - start) / 1000;
    if (round > 0 || seconds > 0.5) least = Math.min(least, seconds / repeats);
    if (seconds / repeats > 0.5) break; // a slow device has said it at once
    repeats = Math.max(1, Math.min(64, Math.round((0.1 * repeats) / Math.max(seconds, 1e-4))));
  }
  return least;
}

// Returns a promise of the speed of each plan beside that of a copy of the same bytes.
export async function measure(runner, isSoftware) {
  const { device } = runner;
  const chosen = content.speed[isSoftware ? 0 : content.speed.length - 1];
  const made = [];
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  try {
    const scratch = Math.max(4, ...Object.values(chosen.plans).map((plan) => plan.buffers.scratch));
    const buffers = {
      input: runner.buffer(made, chosen.bytes, usage, new Float32Array(chosen.elements).fill(1)),
      output: runner.buffer(made, chosen.bytes, usage),
      scratch: runner.buffer(made, scratch, usage),
    };
    const copy = await leastSeconds(device, (encoder) => {
      encoder.copyBufferToBuffer(buffers.input, 0, buffers.output, 0, chosen.bytes);
    });
    const found = { elements: chosen.elements, type: "float32", copy_seconds: copy, operators: {} };
    for (const [name, plan] of Object.entries(chosen.plans)) {
      const seconds = await leastSeconds(device, (encoder) => runner.encode(encoder, plan, buffers, made));
      found.operators[name] = { seconds, share_of_a_copy: copy / seconds };
    }
    return found;
  } finally {
    made.forEach((buffer) => buffer.destroy());
  }
}
