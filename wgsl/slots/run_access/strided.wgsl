// Slot <run_access>: a run of elements at any stride.


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

fn store(element: u32, value: Accumulator) {
    store_bits(element, encode(value));
}

// Stores the first `count` members.
fn store_run(place: u32, stride: u32, count: u32, run: Run) {
    if (0u < count) {
        store(place, run[0]);
    }
    if (1u < count) {
        store(place + 1u * stride, run[1]);
    }
    if (2u < count) {
        store(place + 2u * stride, run[2]);
    }
    if (3u < count) {
        store(place + 3u * stride, run[3]);
    }
    if (4u < count) {
        store(place + 4u * stride, run[4]);
    }
    if (5u < count) {
        store(place + 5u * stride, run[5]);
    }
    if (6u < count) {
        store(place + 6u * stride, run[6]);
    }
    if (7u < count) {
        store(place + 7u * stride, run[7]);
    }
    if (8u < count) {
        store(place + 8u * stride, run[8]);
    }
    if (9u < count) {
        store(place + 9u * stride, run[9]);
    }
    if (10u < count) {
        store(place + 10u * stride, run[10]);
    }
    if (11u < count) {
        store(place + 11u * stride, run[11]);
    }
    if (12u < count) {
        store(place + 12u * stride, run[12]);
    }
    if (13u < count) {
        store(place + 13u * stride, run[13]);
    }
    if (14u < count) {
        store(place + 14u * stride, run[14]);
    }
    if (15u < count) {
        store(place + 15u * stride, run[15]);
    }
}
