// Slot <input>: the input tensor lies in the output's binding, read four words at a time.

fn input_quad(index: u32) -> vec4<u32> {
    return output_quads[index];
}

fn input_word(index: u32) -> u32 {
    return output_quads[index >> 2u][index & 3u];
}
