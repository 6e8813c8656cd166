// Scans whole slices that are neighbours in memory, or windows of whole runs: one word of elements for each invocation.
//
// For many slices along an axis other than the finest. No two invocations share a word, so writing needs no atomics,
// and each word is read and written once. The invocations of a workgroup keep together, run by run, so that a row is
// still in a cache, and its page known, when the next of them reads it.
// Grid: workgroups of `lanes` invocations; each invocation takes `columns` slices.
// Bindings: 0 params, 1 input (absent in place), 2 output (slot: owned), 3 state: 101 words for each slice, between
// windows.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, columns (2 or 4), in_windows, lanes; phase keeps
// its default.
// Bytes moved: each element is read once and written once; exceptional tiles are read twice.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/order.wgsl"
#import "lib/progress_state.wgsl"
#import "lib/run.wgsl"
#import "lib/reads_strided.wgsl"
#import "lib/writes_strided.wgsl"
#import "lib/left_fold.wgsl"
#import "lib/columns.wgsl"

// 64; more on software devices with many slices, to use as much of each page as there is.
override lanes: u32 = 64u;

@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = (workgroup_number(workgroup) * lanes + lane) * columns;
    let is_there = slice < params.count;
    least = SMALL;
    var place = place_of(slice);
    var a = begin_slice();
    var b = begin_slice();
    var c = begin_slice();
    var d = begin_slice();
    if (in_windows && is_there && params.resume == 1u) {
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
        // Where any order does, a left fold is the least work.
        let known = vec4<bool>(EXACT) | vec4<bool>(
            is_absorbed(a.carry), is_absorbed(b.carry), is_absorbed(c.carry), is_absorbed(d.carry),
        );
        for (var done = 0u; done < count; done += FANOUT) {
            workgroupBarrier();
            if (is_there && done + FANOUT <= count) {
                let started = begin_runs(i + done, known, &a, &b, &c, &d);
                for (var m = 0u; m < FANOUT; m += 4u) {
                    let joined = vec4<bool>(m > 0u) | started.joined;
                    scan_row(row_after(place, 0u), joined, started, &a, &b, &c, &d);
                    scan_row(row_after(place, 1u), vec4<bool>(true), started, &a, &b, &c, &d);
                    scan_row(row_after(place, 2u), vec4<bool>(true), started, &a, &b, &c, &d);
                    scan_row(row_after(place, 3u), vec4<bool>(true), started, &a, &b, &c, &d);
                    place.input += 4u * params.input_axis_stride;
                    place.output += 4u * params.output_axis_stride;
                }
                end_runs(i + done, known, &a, &b, &c, &d);
            }
        }
        if (is_there && count % FANOUT > 0u) {
            let started = begin_runs(i + count - count % FANOUT, known, &a, &b, &c, &d);
            for (var m = 0u; m < count % FANOUT; m += 1u) {
                scan_row(place, vec4<bool>(m > 0u) | started.joined, started, &a, &b, &c, &d);
                place.input += params.input_axis_stride;
                place.output += params.output_axis_stride;
            }
            end_runs(i + count - count % FANOUT, known, &a, &b, &c, &d);
        }
        k += count;
        // Windows of floats are whole tiles, and integers go on from anywhere.
        end_tiles(count, tile_place, known, &a, &b, &c, &d);
    }
    if (in_windows && is_there && params.suspend == 1u) {
        suspend(slice, &a);
        suspend(slice + 1u, &b);
        if (columns == 4u) {
            suspend(slice + 2u, &c);
            suspend(slice + 3u, &d);
        }
    }
}
