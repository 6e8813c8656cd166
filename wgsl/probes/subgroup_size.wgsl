// Writes the size of its subgroup, for each invocation of a workgroup. No operator runs it: it needs an extension.
//
// Grid: one workgroup of 64 invocations.
// Bindings: 0 the sizes.

@group(0) @binding(0) var<storage, read_write> sizes: array<u32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(subgroup_size) size: u32) {
    sizes[lane] = size;
}
