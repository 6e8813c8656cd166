// Accumulators of four adjacent columns, and what the order does with them, column by column.
// Needs lib/order/exceptional.wgsl and lib/order/order.wgsl.

struct Four {
    a: Accumulator,
    b: Accumulator,
    c: Accumulator,
    d: Accumulator,
}

fn four_of(a: Accumulator) -> Four {
    return Four(a, a, a, a);
}

fn select_four(without: Four, with_it: Four, condition: bool) -> Four {
    return Four(
        select(without.a, with_it.a, condition),
        select(without.b, with_it.b, condition),
        select(without.c, with_it.c, condition),
        select(without.d, with_it.d, condition),
    );
}

fn combine_four(x: Four, y: Four) -> Four {
    return Four(combine(x.a, y.a), combine(x.b, y.b), combine(x.c, y.c), combine(x.d, y.d));
}

// x `combine` y where x is present, else y, both checked and so are the results. Without branches.
fn append_four(present: bool, x: Four, y: Four) -> Four {
    let linked = Four(link(x.a, y.a), link(x.b, y.b), link(x.c, y.c), link(x.d, y.d));
    return select_four(y, linked, present);
}

fn excess_of_four(x: Four) -> vec4<u32> {
    return vec4<u32>(excess(x.a), excess(x.b), excess(x.c), excess(x.d));
}

// Of elements and what they made.
fn excess_of_made_four(element: Four, value: Four) -> vec4<u32> {
    return vec4<u32>(
        excess_of_made(element.a, value.a),
        excess_of_made(element.b, value.b),
        excess_of_made(element.c, value.c),
        excess_of_made(element.d, value.d),
    );
}
