// Asks scripts/in_browser.py for plans, runs them, and answers with the bytes of their results.

import { Runner } from "./loader.js";

const state = document.getElementById("state");

async function post(path, body) {
  const response = await fetch(path, { method: "POST", body });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

async function readShader(name) {
  return (await fetch(`shaders/${name}`)).text();
}

// A job is the length of its JSON, the JSON, and the bytes of the buffers that it names, in order.
function parseJob(data) {
  const length = new DataView(data).getUint32(0, true);
  const job = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  const contents = {};
  let offset = 4 + length;
  for (const name of job.contents) {
    const size = job.plan.buffers[name];
    contents[name] = new Uint8Array(data, offset, size);
    offset += size;
  }
  return { plan: job.plan, contents };
}

async function openDevice() {
  if (!navigator.gpu) throw new Error("this browser has no WebGPU: the page finds no navigator.gpu");
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) throw new Error("this browser has WebGPU, and finds no adapter for it");
  const device = await adapter.requestDevice();
  device.lost.then(({ message, reason }) => post("lost", `${reason}: ${message}`));
  const { vendor, architecture, description } = adapter.info;
  await post("opened", JSON.stringify({
    adapter: { vendor, architecture, description, isFallback: adapter.info.isFallbackAdapter ?? false },
    features: [...adapter.features],
    browser: navigator.userAgent,
  }));
  return device;
}

async function main() {
  const runner = new Runner(await openDevice(), readShader);
  let next = await post("next");
  for (let done = 1; next.status === 200; done += 1) {
    const { plan, contents } = parseJob(await next.arrayBuffer());
    let path = "result";
    let answer;
    try {
      answer = await runner.run(plan, contents);
    } catch (error) {
      path = "error";
      answer = error.message;
    }
    state.textContent = `${done} plans were run`;
    next = await post(path, answer);
  }
  state.textContent += "; that was all";
}

main().catch((error) => {
  state.textContent = error.message;
  post("lost", error.message);
});
