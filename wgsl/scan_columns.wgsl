// Scans whole slices of 8 or 16 bits, or windows of whole runs, that are neighbours in memory: an invocation a word.
//
// For many slices along an axis other than the finest: no two invocations share a word, so that writing needs no
// atomics, and each word is read and written once.
// Grid: workgroups of 64 invocations; an invocation `columns` slices.
// Bindings: 0 params, 1 input (absent in place), 2 output (slot: owned), 3 state: 101 words a slice, between windows.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, columns (2 or 4); phase and checked as they are.
// Bytes moved: one read and one write an element; exceptional tiles are read twice.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/order.wgsl"
#import "lib/progress_state.wgsl"
#import "lib/run.wgsl"
#import "lib/slice_step.wgsl"
#import "lib/reads_strided.wgsl"
#import "lib/writes_strided.wgsl"
#import "lib/left_fold.wgsl"
#import "lib/columns.wgsl"

// Goes on to the tile after the one that began at `place` with element `i`, of `count` elements.
fn end_tile(count: u32, place: Place, known: bool, progress: ptr<function, Progress>) {
    let found = EXCEPTIONS && !known && (*progress).largest >= INFINITE;
    if (found) {
        let before = (*progress).carry;
        (*progress).left = write_left_fold(has_base(before), before.last, place.input, place.output, count);
    }
    close_tile(progress, known || found);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = (workgroup_number(workgroup) * 64u + lane) * columns;
    if (slice >= params.count) {
        return;
    }
    var place = place_of(slice);
    var a = begin_slice();
    var b = begin_slice();
    var c = begin_slice();
    var d = begin_slice();
    if (params.resume == 1u) {
        a = resume(slice);
        b = resume(slice + 1u);
        if (columns == 4u) {
            c = resume(slice + 2u);
            d = resume(slice + 3u);
        }
    }
    var k = 0u;
    while (k < params.length) {
        // The part of a tile that is in the window.
        let i = params.first + k;
        let tile_place = place;
        let count = min(TILE - i % TILE, params.length - k);
        let a_known = is_absorbed(a.carry);
        let b_known = is_absorbed(b.carry);
        let c_known = is_absorbed(c.carry);
        let d_known = is_absorbed(d.carry);
        for (var done = 0u; done < count; done += FANOUT) {
            let members = min(count - done, FANOUT);
            let rows = load_rows(place.input, params.input_axis_stride, members);
            var results = Columns();
            results.a = step_run(i + done, members, rows.a, a_known, &a);
            results.b = step_run(i + done, members, rows.b, b_known, &b);
            if (columns == 4u) {
                results.c = step_run(i + done, members, rows.c, c_known, &c);
                results.d = step_run(i + done, members, rows.d, d_known, &d);
            }
            store_rows(place.output, params.output_axis_stride, members, results);
            place.input += FANOUT * params.input_axis_stride;
            place.output += FANOUT * params.output_axis_stride;
        }
        k += count;
        let is_last = k == params.length && params.suspend == 0u;
        if ((i + count) % TILE == 0u || is_last) {
            end_tile(count, tile_place, a_known, &a);
            end_tile(count, Place(tile_place.input + 1u, tile_place.output + 1u), b_known, &b);
            if (columns == 4u) {
                end_tile(count, Place(tile_place.input + 2u, tile_place.output + 2u), c_known, &c);
                end_tile(count, Place(tile_place.input + 3u, tile_place.output + 3u), d_known, &d);
            }
        }
    }
    if (params.suspend == 1u) {
        suspend(slice, &a);
        suspend(slice + 1u, &b);
        if (columns == 4u) {
            suspend(slice + 2u, &c);
            suspend(slice + 3u, &d);
        }
    }
}
