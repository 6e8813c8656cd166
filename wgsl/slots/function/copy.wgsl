// Slot <function>: what is there as it is.

fn of_unit(unit: Unit) -> Unit {
    return unit;
}
