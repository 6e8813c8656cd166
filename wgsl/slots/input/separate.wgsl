// Slot <input>: the input tensor has a binding of its own.

@group(0) @binding(1) var<storage, read> input_units: array<Unit>;

fn input_unit(index: u32) -> Unit {
    return input_units[index];
}
