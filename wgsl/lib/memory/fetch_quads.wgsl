// Vectors of 16 bytes in the order of memory: neighbours read neighbours. Needs lib/memory/quads.wgsl.

// Vector `number` of an invocation, of `vectors` from `first` on; the last one again for those behind it.
fn fetch_quad(lane: u32, among: u32, number: u32, first: u32, vectors: u32) -> vec4<u32> {
    if (number * among >= vectors) {
        return vec4<u32>(0u);
    }
    return input_unit(first + min(number * among + lane, vectors - 1u));
}

// As many for each of `among` invocations as a run takes. All are on their way before the first is waited for.
fn fetch_quads(lane: u32, among: u32, first: u32, vectors: u32) -> Quads {
    var read: Quads;
    read[0] = fetch_quad(lane, among, 0u, first, vectors);
    if (input_log2_bits > 3u) {
        read[1] = fetch_quad(lane, among, 1u, first, vectors);
    }
    if (input_log2_bits > 4u) {
        read[2] = fetch_quad(lane, among, 2u, first, vectors);
        read[3] = fetch_quad(lane, among, 3u, first, vectors);
    }
    if (input_log2_bits > 5u) {
        read[4] = fetch_quad(lane, among, 4u, first, vectors);
        read[5] = fetch_quad(lane, among, 5u, first, vectors);
        read[6] = fetch_quad(lane, among, 6u, first, vectors);
        read[7] = fetch_quad(lane, among, 7u, first, vectors);
    }
    return read;
}
