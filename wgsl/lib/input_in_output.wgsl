// Slot <input>: the input tensor lies in the output's binding (in place, or beside the output in one buffer).

fn input_word(index: u32) -> u32 {
    return output_word(index);
}
