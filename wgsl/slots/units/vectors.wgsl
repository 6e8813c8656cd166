// Slot <units>: vectors of 16 bytes on their way into workgroup memory, where they lie in traversal order, and back: of
// decreasing scans turned around, the last one first, with its last element in front. Needs <stage>.

#import "lib/memory/fetch_quads.wgsl"

// So many invocations that their runs take 8 KiB.
override lanes: u32 = 128u;
// Whether scans are decreasing.
override decreasing: bool = false;

fn units_of(elements: u32, log2_bits: u32) -> u32 {
    return elements >> (7u - log2_bits);
}

// The most slices of so many elements whose runs are no more than the invocations, and that are whole vectors together.
fn slices_together(length: u32) -> u32 {
    let bits = length << input_log2_bits;
    let whole = 128u / min(bits & (~bits + 1u), 128u);
    return lanes / ((length + FANOUT - 1u) / FANOUT) / whole * whole;
}

// A vector with its elements in traversal order.
fn in_order(vector: vec4<u32>) -> vec4<u32> {
    if (!decreasing) {
        return vector;
    }
    if (input_log2_bits > 5u) {
        return vector.zwxy;
    }
    var words = vector.wzyx;
    if (input_log2_bits < 5u) {
        words = (words << vec4<u32>(16u)) | (words >> vec4<u32>(16u));
    }
    if (input_log2_bits < 4u) {
        let odd = vec4<u32>(0x00ff00ffu);
        words = ((words & odd) << vec4<u32>(8u)) | ((words >> vec4<u32>(8u)) & odd);
    }
    return words;
}

// The place of vector `number` of so many.
fn place_in_order(number: u32, vectors: u32) -> u32 {
    return select(number, vectors - 1u - number, decreasing && number < vectors);
}

fn leave_in_order(number: u32, vectors: u32, vector: vec4<u32>) {
    leave_vector(place_in_order(number, vectors), in_order(vector));
}

// Leaves `vectors` in workgroup memory.
fn load_units(lane: u32, first: u32, vectors: u32) {
    let read = fetch_quads(lane, lanes, first, vectors);
    leave_in_order(lane, vectors, read[0]);
    if (input_log2_bits > 3u) {
        leave_in_order(lanes + lane, vectors, read[1]);
    }
    if (input_log2_bits > 4u) {
        leave_in_order(2u * lanes + lane, vectors, read[2]);
        leave_in_order(3u * lanes + lane, vectors, read[3]);
    }
    if (input_log2_bits > 5u) {
        leave_in_order(4u * lanes + lane, vectors, read[4]);
        leave_in_order(5u * lanes + lane, vectors, read[5]);
        leave_in_order(6u * lanes + lane, vectors, read[6]);
        leave_in_order(7u * lanes + lane, vectors, read[7]);
    }
}

fn store_units(lane: u32, first: u32, vectors: u32) {
    for (var vector = lane; vector < vectors; vector += lanes) {
        set_output_unit(first + place_in_order(vector, vectors), in_order(vector_left(vector)));
    }
}
