// Turns the tile totals of each slice into what each tile's results begin with.
//
// Grid: a workgroup of 64 invocations a slice; an invocation a span of 16 tiles, 64 spans at a time.
// Bindings: 0 params, 3 state: reads the records of scan_tile_totals, writes base and end of every tile, and for the
// next window the slice's s and end.
// Constants: product, opaque; input_log2_bits and output_log2_bits have no effect.
// Bytes moved: 4 accumulators read and 2 written a tile.

#import "lib/params.wgsl"
#import <input>
#import <output>
#import "lib/load_bits.wgsl"
#import <element>
#import "lib/order.wgsl"
#import "lib/tile_state.wgsl"

const SPANS = 64u;

var<workgroup> spans: array<Accumulator, 64>;
var<workgroup> carry: Accumulator;
var<workgroup> last_result: Accumulator;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let slice = workgroup_number(workgroup);
    if (slice >= params.count) {
        return;
    }
    let first_span = params.first >> SPAN_SHIFT;
    let span_count = (params.tiles + FANOUT - 1u) / FANOUT;
    if (lane == 0u && first_span > 0u) {
        carry = state[slice_record(slice) + SLICE_SPAN];
        state[slice_record(slice) + SLICE_BEFORE] = state[slice_record(slice) + SLICE_END];
    }
    for (var chunk = 0u; chunk < span_count; chunk += SPANS) {
        let span = chunk + lane;
        let begin = span * FANOUT;
        let end = min(begin + FANOUT, params.tiles);
        var total: Accumulator;
        for (var tile = begin; tile < end; tile += 1u) {
            total = append(tile > begin, total, state[tile_record(slice, tile) + TILE_TOTAL]);
        }
        spans[lane] = total;
        workgroupBarrier();
        if (lane == 0u) {
            // Span totals become s, the fold of all spans before; `carry` goes on to the next chunk.
            for (var i = 0u; i < min(SPANS, span_count - chunk); i += 1u) {
                let before = carry;
                carry = append(first_span + chunk + i > 0u, before, spans[i]);
                spans[i] = before;
            }
        }
        workgroupBarrier();
        var c: Accumulator;
        for (var tile = begin; tile < end; tile += 1u) {
            let record = tile_record(slice, tile);
            let tile_total = state[record + TILE_TOTAL];
            let has_s = first_span + span > 0u;
            var base = spans[lane];
            if (tile > begin) {
                base = append(has_s, base, c);
            }
            let has_base = has_s || tile > begin;
            let q = combine(append(has_base, base, state[record + TILE_P]), state[record + TILE_H]);
            let result = combine(q, state[record + TILE_R]);
            state[record + TILE_BASE] = base;
            state[record + TILE_END] = result;
            if (tile + 1u == params.tiles) {
                last_result = result;
            }
            c = append(tile > begin, c, tile_total);
        }
        workgroupBarrier();
    }
    if (lane == 0u && params.suspend == 1u) {
        state[slice_record(slice) + SLICE_SPAN] = carry;
        state[slice_record(slice) + SLICE_END] = last_result;
    }
}
