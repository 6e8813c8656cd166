// Slot <input>: the input tensor lies in the output's binding: in place, or so near that two bindings would meet.

fn input_unit(index: u32) -> Unit {
    return output_unit(index);
}
