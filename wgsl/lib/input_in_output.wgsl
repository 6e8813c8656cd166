// Slot <input>: the input tensor lies in the output's binding: in place, or so near that two bindings would meet.

fn input_word(index: u32) -> u32 {
    return output_word(index);
}
