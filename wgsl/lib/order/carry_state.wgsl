// The carry of each slice in scratch memory, from one window to the next.

#import "lib/memory/accumulators.wgsl"

// Words of a slice: three accumulators of up to two words, flags, and one without use.
const CARRY_WORDS = 8u;

fn load_carry(word: u32) -> Carry {
    return carry_of(
        get_accumulator(word, 1u),
        get_accumulator(word + 2u, 1u),
        get_accumulator(word + 4u, 1u),
        state_word(word + 6u),
    );
}

fn store_carry(word: u32, carry: Carry) {
    put_accumulator(word, 1u, carry.s);
    put_accumulator(word + 2u, 1u, carry.c);
    put_accumulator(word + 4u, 1u, carry.last);
    set_state_word(word + 6u, carry_flags(carry));
}
