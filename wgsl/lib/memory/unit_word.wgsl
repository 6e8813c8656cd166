// Tensors as arrays of 32-bit words, for the pieces of <output> that write words.

alias Unit = u32;
const UNIT_LOG2_BITS = 5u;

fn input_word(index: u32) -> u32 {
    return input_unit(index);
}
