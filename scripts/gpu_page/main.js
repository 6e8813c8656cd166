// Opens a device, and ties the page's parts together.

import { Runner } from "./loader.js";
import { compile, failureOf, measure } from "./check.js";
import { content, readShader } from "./data.js";
import { Playground } from "./playground.js";
import { Steps } from "./steps.js";

const part = (id) => document.getElementById(id);
// Behind the page's address: #only=TEXT runs the cases whose names have the text.
const only = new URLSearchParams(location.hash.slice(1)).get("only") ?? "";
const cases = content.cases.filter(({ name }) => name.includes(only));
let lost = null;

function say(id, text, kind = "") {
  part(id).textContent = text;
  part(id).className = kind;
}

function without(message) {
  part("no-webgpu").textContent = message;
  part("no-webgpu").hidden = false;
}

function cellOf(row, name, text, kind, spoken) {
  const cell = row.insertCell();
  cell.className = kind;
  cell.textContent = text;
  cell.dataset.name = name;
  if (spoken) {
    const hidden = document.createElement("span");
    hidden.className = "hidden";
    hidden.textContent = spoken;
    cell.append(hidden);
  }
}

function header(row, text, scope) {
  const cell = document.createElement("th");
  cell.scope = scope;
  cell.textContent = text;
  row.append(cell);
}

// Shows a verdict for each type and kernel. `failures` has what is wrong, or null, by case; cases not yet run are absent.
function showVerdicts(failures) {
  const columns = [...new Set(content.cases.map(({ column }) => column))];
  const types = [...new Set(content.cases.map(({ type }) => type))].sort((a, b) => (a === "bool") - (b === "bool"));
  const table = part("verdicts");
  while (table.rows.length) table.deleteRow(0);
  const head = table.insertRow();
  header(head, "type", "col");
  columns.forEach((column) => header(head, column, "col"));
  for (const type of types) {
    const row = table.insertRow();
    header(row, type, "row");
    for (const column of columns) {
      const here = cases.filter((one) => one.type === type && one.column === column);
      const run = here.filter(({ name }) => failures.has(name));
      const right = run.filter(({ name }) => failures.get(name) === null).length;
      const name = `${type}/${column}`;
      if (!here.length) cellOf(row, name, "", "none", "no case");
      else if (!run.length) cellOf(row, name, "·", "none", "not run");
      else if (right === run.length) cellOf(row, name, `✓ ${right}`, "good", ` of ${here.length}, the same bits`);
      else cellOf(row, name, `✗ ${right}/${run.length}`, "bad", " other bits");
    }
  }
}

function showSpeed(speed) {
  const table = part("speed");
  while (table.rows.length) table.deleteRow(0);
  part("speed-caption").textContent = `${speed.elements.toLocaleString("en")} elements of ${speed.type} in a row`;
  const head = table.insertRow();
  ["operator", "milliseconds", "share of a copy's speed"].forEach((text) => header(head, text, "col"));
  const show = (name, seconds) => {
    const row = table.insertRow();
    cellOf(row, name, name, "");
    cellOf(row, name, (1000 * seconds).toFixed(2), "");
    cellOf(row, name, `${((100 * speed.copy_seconds) / seconds).toPrecision(3)} %`, "");
  };
  show("copy", speed.copy_seconds);
  for (const [name, { seconds }] of Object.entries(speed.operators)) show(name, seconds);
}

async function check(runner, adapter) {
  part("run").disabled = true;
  part("progress-box").hidden = false;
  const progress = (what, done, all) => {
    part("progress").max = all;
    part("progress").value = done;
    part("progress-text").textContent = `${what} ${done} of ${all}`;
  };
  const failures = new Map();
  showVerdicts(failures);
  say("verdict", "Running …");
  await compile(runner, cases, (done, all) => progress("Compiled", done, all));
  for (const one of cases) {
    failures.set(one.name, await failureOf(runner, one));
    progress("Ran case", failures.size, cases.length);
    if (lost) throw new Error(`the device was lost in the case ${one.name}: ${lost}`);
    if (failures.size % 8 === 0) showVerdicts(failures);
  }
  showVerdicts(failures);
  const differences = Object.fromEntries([...failures].filter(([, failure]) => failure !== null));
  const count = Object.keys(differences).length;
  const passed = count === 0 && failures.size > 0;
  part("differences").replaceChildren(
    ...Object.entries(differences).map(([name, failure]) => {
      const item = document.createElement("li");
      item.textContent = `${name}: ${failure}`;
      return item;
    }),
  );
  part("differences-box").hidden = count === 0;
  part("progress-text").textContent = "Measuring …";
  const speed = passed ? await measure(runner, adapter.isFallback) : null;
  if (speed) showSpeed(speed);
  report({ adapter, passed, cases: failures.size, only, differences, speed });
  part("speed").hidden = speed === null;
  part("after").hidden = false;
  part("progress-box").hidden = true;
  part("run").disabled = false;
  say(
    "verdict",
    passed
      ? `✓ The same bits: all ${failures.size} cases have the reference's digests.`
      : `✗ Other bits: ${count} of ${failures.size} cases do not have the reference's digests. Please report it.`,
    passed ? "good" : "bad",
  );
}

function report(found) {
  const text = JSON.stringify(
    { format: "dmlgpu page report", version: 1, dmlgpu: content.dmlgpu, browser: navigator.userAgent, ...found },
    null,
    1,
  );
  part("report").textContent = text;
  part("save").onclick = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: "application/json" }));
    link.download = "dmlgpu-report.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  part("copy").onclick = async () => {
    try {
      await navigator.clipboard.writeText(text);
      part("copied").textContent = "Copied.";
    } catch {
      part("copied").textContent = "The browser did not allow it: open the report below and copy it from there.";
    }
  };
}

function showAdapter(adapter) {
  const name = [adapter.vendor, adapter.architecture, adapter.description || adapter.device].filter(Boolean).join(" ");
  const lines = {
    Adapter: (name || "not named by the browser") + (adapter.isFallback ? " (software)" : ""),
    Browser: navigator.userAgent,
    dmlgpu: content.dmlgpu,
  };
  part("adapter").replaceChildren(
    ...Object.entries(lines).flatMap(([term, text]) => {
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      dt.textContent = term;
      dd.textContent = text;
      return [dt, dd];
    }),
  );
}

async function open() {
  if (!navigator.gpu) {
    return without(
      window.isSecureContext
        ? "This browser has no WebGPU. Use Chrome or Edge 113, Firefox 141 or Safari 26, or a newer one; on Linux, open " +
            "chrome://flags and enable “Unsafe WebGPU Support”, or about:config in Firefox and set dom.webgpu.enabled."
        : "Browsers offer WebGPU only to pages from https, localhost or a file: open this page from one of these.",
    );
  }
  const gpuAdapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!gpuAdapter) {
    return without(
      "This browser has WebGPU, and finds no adapter for it. Enable hardware acceleration in its settings and update the " +
        "GPU's driver; on Linux, open chrome://flags and enable “Vulkan” and “Unsafe WebGPU Support”.",
    );
  }
  const { vendor, architecture, device: name, description } = gpuAdapter.info;
  const isFallback = gpuAdapter.info.isFallbackAdapter ?? gpuAdapter.isFallbackAdapter ?? false;
  const adapter = { vendor, architecture, device: name, description, isFallback };
  const device = await gpuAdapter.requestDevice();
  device.lost.then(({ reason, message }) => {
    lost = `${reason}: ${message}`;
  });
  const runner = new Runner(device, readShader);
  showAdapter(adapter);
  playground.open(runner);
  part("run").addEventListener("click", () =>
    check(runner, adapter).catch((error) => {
      say("verdict", `✗ The check ended: ${error.message}. Reload the page to try again.`, "bad");
    }),
  );
  part("run").disabled = false;
  return undefined;
}

part("case-count").textContent = content.cases.length;
showVerdicts(new Map());
const playground = new Playground(new Steps());
open().catch((error) => without(`WebGPU could not be opened: ${error.message}`));
