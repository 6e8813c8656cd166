// Scans windows that begin or end inside a run, an element at a time, in two phases.
//
// For tensors whose elements lie so far apart that a binding holds few of a slice.
// Grid: workgroups of 64 invocations; one invocation for each slice.
// Bindings: 0 params, 1 input (absent in place), 2 output, 3 state: 101 words for each slice.
// Constants: product, opaque, input_log2_bits, output_log2_bits, flat, phase; in_windows keeps its default.
// Bytes moved: each element is read twice and written once; the state is read and written.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/elements.wgsl"
#import "lib/store.wgsl"
#import "lib/order.wgsl"
#import "lib/progress_state.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup) * 64u + lane;
    if (slice >= params.count) {
        return;
    }
    if (phase == CHECK) {
        least = SMALL;
    }
    var place = place_of(slice);
    var progress = before_window(slice);
    var exceptions = known_exceptions(slice);
    for (var k = 0u; k < params.length; k += 1u) {
        let i = params.first + k;
        let known = is_absorbed(progress.carry) || (phase == WRITE && (exceptions & tile_bit(i)) != 0u);
        let before = progress.last;
        take_item(i % TILE, i > 0u, load(place.input), &progress);
        if (known) {
            progress.last = progress.left;
        }
        if (phase == WRITE) {
            if (params.exclusive == 1u) {
                store(place.output, before);
            } else {
                store(place.output, progress.last);
            }
        }
        if (i % FANOUT == FANOUT - 1u) {
            close_run((i >> RUN_SHIFT) % 256u, &progress);
        }
        if (i % TILE == TILE - 1u) {
            let found = phase == CHECK && !known && is_excessive(progress.excess);
            exceptions |= select(0u, tile_bit(i), found);
            close_tile(&progress, known || found);
        }
        place.input += params.input_axis_stride;
        place.output += params.output_axis_stride;
    }
    end_window(slice, &progress);
    if (params.suspend == 0u && phase == CHECK && is_excessive(progress.excess)) {
        // The slice's last tile, if it is not full; a full one has left nothing.
        exceptions |= tile_bit(params.first + params.length - 1u);
    }
    if (phase == CHECK) {
        set_state_word(slice, exceptions);
    }
}
