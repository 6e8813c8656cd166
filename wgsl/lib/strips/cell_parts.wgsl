// What scratch memory has of each slice for itself, of cells: of integers that are combined as they lie, an accumulator
// has those of a word. Needs <cells>, <element> and lib/memory/accumulators.wgsl.

fn bits_of_part(part: u32) -> u32 {
    return part << output_log2_bits;
}

// Stores the accumulators of a cell's slices, the first at `word`, the others `apart` words from each other. Bits above
// an integer's own are without meaning there, as sums and products carry none down.
fn put_parts(slice: u32, word: u32, apart: u32, value: Accumulator) {
    put_accumulator(word, 1u, value);
    for (var part = 1u; part < parts_of(slice); part += 1u) {
        set_state_word(word + part * apart, to_words(value).x >> bits_of_part(part));
    }
}

fn get_parts(slice: u32, word: u32, apart: u32) -> Accumulator {
    var words = to_words(get_accumulator(word, 1u));
    for (var part = 1u; part < parts_of(slice); part += 1u) {
        let above = 0xffffffffu << bits_of_part(part);
        words.x = (words.x & ~above) | (state_word(word + part * apart) << bits_of_part(part));
    }
    return of_words(words);
}
