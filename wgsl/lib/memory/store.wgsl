// One element stored. Needs <output> and <element>.

fn store(element: u32, value: Accumulator) {
    store_bits(element, encode(value));
}
