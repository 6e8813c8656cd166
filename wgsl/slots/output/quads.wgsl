// Slot <output>: words that no two invocations share, read and written four at a time.

override output_log2_bits: u32 = 5u;

alias Unit = vec4<u32>;
const UNIT_LOG2_BITS = 7u;

@group(0) @binding(2) var<storage, read_write> output_units: array<Unit>;

fn output_unit(index: u32) -> Unit {
    return output_units[index];
}

fn set_output_unit(index: u32, unit: Unit) {
    output_units[index] = unit;
}

fn input_word(index: u32) -> u32 {
    return input_unit(index >> 2u)[index & 3u];
}
