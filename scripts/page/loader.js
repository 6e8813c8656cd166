// Runs plans of dmlgpu by WebGPU, such as those that "dmlgpu export" writes. docs/export.md says what a plan holds.

// A browser without WebGPU has none of these, and gets as far as to say so.
const { STORAGE, UNIFORM, COPY_SRC, COPY_DST, MAP_READ } = globalThis.GPUBufferUsage ?? {};

// Reads the folder that "dmlgpu export" wrote, at an address, for a device.
// Returns a promise of {plan, readShader}; rejects it where the device cannot run the plan.
export async function readExport(address, device) {
  const folder = new URL(address, globalThis.location?.href);
  const read = async (name) => {
    const response = await fetch(new URL(name, folder));
    if (!response.ok) throw new Error(`${response.url} cannot be read: status ${response.status}`);
    return response;
  };
  const plan = await (await read("plan.json")).json();
  if (plan.format !== "dmlgpu plan" || plan.version !== 1) {
    throw new Error(`${folder}plan.json is no plan of version 1: export it with this version of dmlgpu`);
  }
  for (const [name, needed] of Object.entries(plan.limits)) {
    const granted = device.limits[name];
    if (name.startsWith("min") ? granted > needed : granted < needed) {
      throw new Error(`the plan needs a device with ${name} ${needed}, and this one has ${granted}`);
    }
  }
  return { plan, readShader: async (name) => (await read(name)).text() };
}

export class Runner {
  // readShader: a function that takes a shader's name and returns a promise of its WGSL.
  constructor(device, readShader) {
    this.device = device;
    this.readShader = readShader;
    this.modules = new Map();
    this.pipelines = new Map();
  }

  // Runs a plan over buffers that begin with the given bytes: {input, output}, or {output} where that holds both.
  // Returns a promise of the output's bytes afterwards; an error of WebGPU rejects it.
  async run(plan, contents) {
    const filters = ["validation", "internal", "out-of-memory"];
    filters.forEach((filter) => this.device.pushErrorScope(filter));
    const made = [];
    let bytes, failure;
    try {
      bytes = await this.runUnguarded(plan, contents, made);
    } catch (error) {
      failure = error;
    }
    made.forEach((buffer) => buffer.destroy());
    for (const _ of filters) failure = (await this.device.popErrorScope()) ?? failure;
    if (failure) throw failure;
    return bytes;
  }

  async runUnguarded(plan, contents, made) {
    const buffers = {};
    for (const [name, size] of Object.entries(plan.buffers)) {
      if (size) buffers[name] = this.buffer(made, size, STORAGE | COPY_SRC | COPY_DST, contents[name]);
    }
    const encoder = this.device.createCommandEncoder();
    await this.encode(encoder, plan, buffers, made);
    const result = this.buffer(made, plan.buffers.output, MAP_READ | COPY_DST);
    encoder.copyBufferToBuffer(buffers.output, 0, result, 0, result.size);
    this.device.queue.submit([encoder.finish()]);
    await result.mapAsync(GPUMapMode.READ);
    return result.getMappedRange().slice(0);
  }

  // Records a plan's passes over buffers, by name. The uniforms' buffers are added to those that were made.
  async encode(encoder, plan, buffers, made) {
    const compute = encoder.beginComputePass();
    for (const pass of plan.passes) {
      const { pipeline, layout } = await this.pipeline(pass);
      const uniforms = this.buffer(made, 4 * pass.uniforms.length, UNIFORM, new Uint32Array(pass.uniforms));
      const entries = pass.bindings.map(({ binding, type, buffer, offset, size }) => ({
        binding,
        resource: type === "uniform" ? { buffer: uniforms } : { buffer: buffers[buffer], offset, size },
      }));
      compute.setPipeline(pipeline);
      compute.setBindGroup(0, this.device.createBindGroup({ layout, entries }));
      compute.dispatchWorkgroups(...pass.grid);
    }
    compute.end();
  }

  // Returns a buffer that begins with the bytes of a typed array, where one is given.
  buffer(made, size, usage, content) {
    const buffer = this.device.createBuffer({ size, usage, mappedAtCreation: content !== undefined });
    made.push(buffer);
    if (content !== undefined) {
      const bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
      new Uint8Array(buffer.getMappedRange()).set(bytes);
      buffer.unmap();
    }
    return buffer;
  }

  // Returns the pipeline of a pass and the layout of its bind group, from earlier passes if one had the same.
  async pipeline({ shader, constants, bindings }) {
    const types = bindings.map(({ binding, type }) => ({ binding, type }));
    const key = JSON.stringify([shader, constants, types]);
    if (!this.pipelines.has(key)) {
      const layout = this.device.createBindGroupLayout({
        entries: types.map(({ binding, type }) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } })),
      });
      const pipeline = await this.device.createComputePipelineAsync({
        layout: this.device.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: { module: await this.module(shader), entryPoint: "main", constants },
      });
      this.pipelines.set(key, { pipeline, layout });
    }
    return this.pipelines.get(key);
  }

  async module(name) {
    if (!this.modules.has(name)) {
      const module = this.device.createShaderModule({ label: name, code: await this.readShader(name) });
      for (const { type, message, lineNum, linePos } of (await module.getCompilationInfo()).messages) {
        if (type === "error") throw new Error(`${name}:${lineNum}:${linePos}: ${message}`);
      }
      this.modules.set(name, module);
    }
    return this.modules.get(name);
  }
}
