// Turns WGSL into HLSL with naga: a JSON string of WGSL a line in, an object with `hlsl` or `error` a line out.
//
// Its argument is the folder of the npm package wgsl-wasm-transpiler-bundler, whose own entry wants a bundler.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const name = "wgsl_wasm_transpiler_bg";
const folder = process.argv[2];
const glue = await import(pathToFileURL(`${folder}/${name}.js`));
const imports = { [`./${name}.js`]: glue };
const { instance } = await WebAssembly.instantiate(readFileSync(`${folder}/${name}.wasm`), imports);
glue.__wbg_set_wasm(instance.exports);
instance.exports.__wbindgen_start();

for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
        answer = { hlsl: glue.compileShader(JSON.parse(line), "hlsl") };
    } catch (error) {
        answer = { error: String(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
}
