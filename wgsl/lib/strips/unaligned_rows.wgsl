// Rows of a strip whose words begin anywhere in words of memory, such as those of an odd number of bytes.
//
// An invocation reads the two words of memory that its own lies in. On the way back neighbours show each other theirs,
// so that each word of memory is written once. The first and the last of a row, which are shared with the strips beside
// it, need an atomic. Needs <input>, <output>, lib/strips/stretch.wgsl, and of <cells> cell_bits.

#import "lib/strips/rows.wgsl"

// Elements of a word.
override in_cell: u32 = 32u >> output_log2_bits;
const slices_of_cell = 1u;
const SHELF = 512u;
const NO_SLICE = 0xffffffffu;

// What the invocations have of four rows.
var<workgroup> words_beside: array<vec4<u32>, 256>;

// The strips of slices that are neighbours. A strip ends where the next slice is no neighbour.
fn strips_across() -> u32 {
    return (params.across - 1u) / (lanes * in_cell) + 1u;
}

fn strip_count() -> u32 {
    return params.count / params.across * strips_across();
}

// The first slice of an invocation's cell.
fn first_slice(strip: u32, beside: u32) -> u32 {
    let strips = strips_across();
    let column = (strip % strips * lanes + beside) * in_cell;
    return select(NO_SLICE, strip / strips * params.across + column, column < params.across);
}

// How many slices the cell has that begins with this one.
fn slices_there(first: u32) -> u32 {
    return min(in_cell, params.across - first % params.across);
}

// The slice whose place load_cells is told besides the first: the last one of the cell.
fn other_slice(first: u32, second: u32) -> u32 {
    return first + slices_there(first) - 1u;
}

fn load_cells(place: u32, last: u32) -> vec2<u32> {
    let in_word = 5u - input_log2_bits;
    let shift = (place << input_log2_bits) & 31u;
    let low = input_unit(place >> in_word) >> shift;
    let high = input_unit(last >> in_word) << ((32u - shift) & 31u); // the same word, and its bits, if shift is 0
    return vec2<u32>(low | high, 0u);
}

// Of the elements of a row: how an invocation's lie among those of others.
struct Share {
    mask: u32,          // the bits of its word that are there
    has_left: bool,     // whether another has the word before
    is_last: bool,      // whether none has the word behind
}

// Stores the first `count` members of runs, from row number `row` of the window on; all invocations call it.
fn store_rows(lane: u32, row: u32, slice: u32, pair: Pair, count: u32, a: Run, b: Run) {
    let beside = lane % lanes;
    let there = slices_there(slice);
    let mask = 0xffffffffu >> (32u - (there << output_log2_bits));
    let is_last = beside + 1u == lanes || slice % params.across + there == params.across;
    let share = Share(mask, beside > 0u, is_last);
    let stride = params.output_axis_stride;
    let place = pair.place.output + row * stride;
    give_rows(lane, share, place, count, words_of(a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]));
    let second = count - min(count, 4u);
    give_rows(lane, share, place + 4u * stride, second, words_of(a[4], b[4], a[5], b[5], a[6], b[6], a[7], b[7]));
    let third = count - min(count, 8u);
    give_rows(lane, share, place + 8u * stride, third, words_of(a[8], b[8], a[9], b[9], a[10], b[10], a[11], b[11]));
    let fourth = count - min(count, 12u);
    give_rows(
        lane, share, place + 12u * stride, fourth, words_of(a[12], b[12], a[13], b[13], a[14], b[14], a[15], b[15]),
    );
}

fn words_of(
    a: Accumulator, b: Accumulator, c: Accumulator, d: Accumulator,
    e: Accumulator, f: Accumulator, g: Accumulator, h: Accumulator,
) -> vec4<u32> {
    return vec4<u32>(cell_bits(a, b), cell_bits(c, d), cell_bits(e, f), cell_bits(g, h));
}

// Writes the first `count` of four rows. Where there are none, nothing is worked out either: compilers would do so for
// the rows of all calls at once, and keep it in registers.
fn give_rows(lane: u32, share: Share, place: u32, count: u32, words: vec4<u32>) {
    workgroupBarrier();
    words_beside[lane] = words;
    workgroupBarrier();
    if (count > 0u) {
        let left = words_beside[lane - min(lane, 1u)];
        let rows = vec4<u32>(0u, 1u, 2u, 3u);
        let there = select(vec4<u32>(), vec4<u32>(share.mask), rows < vec4<u32>(count));
        let places = place + rows * params.output_axis_stride;
        let shift = (places << vec4<u32>(output_log2_bits)) & vec4<u32>(31u);
        let rest = (32u - shift) & vec4<u32>(31u);
        let is_inside = shift > vec4<u32>();
        // First the word in which the invocation's own begins, with the end of its left neighbour's.
        let has_left = is_inside & vec4<bool>(share.has_left) & (there > vec4<u32>());
        let of_left = select(vec4<u32>(), vec4<u32>(0xffffffffu) >> rest, has_left);
        var index = places >> vec4<u32>(5u - output_log2_bits);
        var bits = ((left >> rest) & of_left) | (words << shift);
        var mask = of_left | (there << shift);
        for (var k = 0u; k < select(1u, 2u, share.is_last); k += 1u) {
            put_four(index, bits, mask);
            // The word behind that one.
            index += vec4<u32>(1u);
            bits = words >> rest;
            mask = select(vec4<u32>(), there >> rest, is_inside);
        }
    }
}

// Puts the bits of masks into four words of memory. Those of which others have a part are all read before any is
// written, so that no read waits for a write. In loops: SwiftShader takes gigabytes of memory to compile four lines.
fn put_four(index: vec4<u32>, bits: vec4<u32>, mask: vec4<u32>) {
    var old: vec4<u32>;
    for (var k = 0u; k < 4u; k += 1u) {
        old[k] = shared_word(index[k], mask[k]);
    }
    for (var k = 0u; k < 4u; k += 1u) {
        put_word(index[k], old[k], bits[k], mask[k]);
    }
}
