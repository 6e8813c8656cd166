// Slot <units>: elements of 32 or 64 bits on their way into workgroup memory, one at a time, wherever they begin. They
// lie there in traversal order: of decreasing scans the last one first. Needs <stage>.

#import "lib/memory/load_bits.wgsl"

// So many invocations that their runs take 8 KiB.
override lanes: u32 = 128u;
// Whether scans are decreasing.
override decreasing: bool = false;

fn units_of(elements: u32, log2_bits: u32) -> u32 {
    return elements;
}

// The most slices of so many elements whose runs are no more than the invocations.
fn slices_together(length: u32) -> u32 {
    return lanes / ((length + FANOUT - 1u) / FANOUT);
}

// The place of element `number` of so many.
fn place_in_order(number: u32, elements: u32) -> u32 {
    return select(number, elements - 1u - number, decreasing && number < elements);
}

// Element `number` of an invocation; the last one again for those behind it.
fn fetch(lane: u32, number: u32, first: u32, elements: u32) -> vec2<u32> {
    if (number * lanes >= elements) {
        return vec2<u32>(0u);
    }
    return load_bits(first + min(number * lanes + lane, elements - 1u));
}

fn leave(lane: u32, number: u32, elements: u32, bits: vec2<u32>) {
    leave_bits(place_in_order(number * lanes + lane, elements), bits);
}

// Elements `number` and `number` + 1 of an invocation.
fn fetch_two(lane: u32, number: u32, first: u32, elements: u32) -> vec4<u32> {
    return vec4<u32>(fetch(lane, number, first, elements), fetch(lane, number + 1u, first, elements));
}

fn leave_two(lane: u32, number: u32, elements: u32, bits: vec4<u32>) {
    leave(lane, number, elements, bits.xy);
    leave(lane, number + 1u, elements, bits.zw);
}

// Leaves `elements` in workgroup memory. All are on their way before the first is waited for.
fn load_units(lane: u32, first: u32, elements: u32) {
    var read: Quads;
    read[0] = fetch_two(lane, 0u, first, elements);
    read[1] = fetch_two(lane, 2u, first, elements);
    read[2] = fetch_two(lane, 4u, first, elements);
    read[3] = fetch_two(lane, 6u, first, elements);
    read[4] = fetch_two(lane, 8u, first, elements);
    read[5] = fetch_two(lane, 10u, first, elements);
    read[6] = fetch_two(lane, 12u, first, elements);
    read[7] = fetch_two(lane, 14u, first, elements);
    leave_two(lane, 0u, elements, read[0]);
    leave_two(lane, 2u, elements, read[1]);
    leave_two(lane, 4u, elements, read[2]);
    leave_two(lane, 6u, elements, read[3]);
    leave_two(lane, 8u, elements, read[4]);
    leave_two(lane, 10u, elements, read[5]);
    leave_two(lane, 12u, elements, read[6]);
    leave_two(lane, 14u, elements, read[7]);
}

fn store_units(lane: u32, first: u32, elements: u32) {
    for (var number = lane; number < elements; number += lanes) {
        store_bits(first + place_in_order(number, elements), bits_left(number));
    }
}
