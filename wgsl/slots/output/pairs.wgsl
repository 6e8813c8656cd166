// Slot <output>: words that no two invocations share, read and written two at a time.

override output_log2_bits: u32 = 5u;

alias Unit = vec2<u32>;

@group(0) @binding(2) var<storage, read_write> output_units: array<Unit>;

fn output_unit(index: u32) -> Unit {
    return output_units[index];
}

fn set_output_unit(index: u32, unit: Unit) {
    output_units[index] = unit;
}
