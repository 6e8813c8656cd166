// The elements of a turn in workgroup memory, as bits: of a tile by their numbers along the axis, of rows of a strip
// as they lie in memory.

// The bits of a turn's elements, of which there are 2048, or 1024 of 64 bits with the high words behind the low ones.
// 8 KiB, so that no kernel needs more than WebGPU's 16: a tile takes two turns, or four.
var<workgroup> stage: array<u32, 2048>;
const HIGH = 1024u;
override TURN: u32 = 2048u >> (input_log2_bits / 6u);
override TURN_RUNS: u32 = 128u >> (input_log2_bits / 6u);

// Keeps neighbours out of each other's banks of memory, where they have neighbouring elements and where they have
// neighbouring runs.
fn on_stage(place: u32) -> u32 {
    return place ^ ((place >> 5u) & 31u);
}

fn leave(place: u32, bits: vec2<u32>) {
    stage[on_stage(place)] = bits.x;
    if (input_log2_bits > 5u) {
        stage[HIGH + on_stage(place)] = bits.y;
    }
}

fn bits_left(place: u32) -> vec2<u32> {
    var high = 0u;
    if (input_log2_bits > 5u) {
        high = stage[HIGH + on_stage(place)];
    }
    return vec2<u32>(stage[on_stage(place)], high);
}
