// Slot <input>: the input tensor lies in the output's binding, read two words at a time.

fn input_pair(index: u32) -> vec2<u32> {
    return output_pairs[index];
}
