// Words of memory out of elements on the stage. Needs lib/tiles/turn_stage.wgsl and <output>.

// Writes `count` elements, which lie without gaps from element `low` of the tensor on, a word at a time. That one is
// at `place`, each further one `step` behind the one before it.
fn store_words(lane: u32, low: u32, count: u32, place: u32, step: u32) {
    let in_word = 5u - min(output_log2_bits, 5u);
    let first = low >> in_word;
    let words = select(((low + count - 1u) >> in_word) - first + 1u, 0u, count == 0u);
    for (var word = lane; word < words; word += LANES) {
        var bits = 0u;
        var mask = 0u;
        for (var i = 0u; i < 1u << in_word; i += 1u) {
            // Before the first element this is a large number.
            let number = ((first + word) << in_word) + i - low;
            if (number < count) {
                let width = 1u << min(output_log2_bits, 5u);
                let left = bits_left(place + number * step).x;
                bits = insertBits(bits, left, i * width, width);
                mask = insertBits(mask, 0xffffffffu, i * width, width);
            }
        }
        put_bits(first + word, bits, mask);
    }
}
