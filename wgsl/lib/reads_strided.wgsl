// Slot <reads>: a run of elements at any stride.

// The `count` elements (1 to 16) from `place` on; what follows them is without meaning.
fn load_run(place: u32, stride: u32, count: u32) -> Run {
    let last = count - 1u;
    return Run(
        load(place + min(0u, last) * stride),
        load(place + min(1u, last) * stride),
        load(place + min(2u, last) * stride),
        load(place + min(3u, last) * stride),
        load(place + min(4u, last) * stride),
        load(place + min(5u, last) * stride),
        load(place + min(6u, last) * stride),
        load(place + min(7u, last) * stride),
        load(place + min(8u, last) * stride),
        load(place + min(9u, last) * stride),
        load(place + min(10u, last) * stride),
        load(place + min(11u, last) * stride),
        load(place + min(12u, last) * stride),
        load(place + min(13u, last) * stride),
        load(place + min(14u, last) * stride),
        load(place + min(15u, last) * stride),
    );
}
