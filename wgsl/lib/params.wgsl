// The uniforms of every kernel. Written by dmlgpu/planning/params.py, field for field.

struct Params {
    // The dimensions other than the scan axis (all of them in elementwise kernels), innermost first.
    sizes: array<vec4<u32>, 2>,
    input_strides: array<vec4<u32>, 2>,
    output_strides: array<vec4<u32>, 2>,
    rank: u32,
    count: u32,                 // slices, or elements in elementwise kernels
    input_offset: u32,          // element of the binding where the first slice begins
    output_offset: u32,
    // The scan axis, in traversal order; strides are two's complement.
    length: u32,                // elements of the axis in this window
    first: u32,                 // elements of the slice before this window
    input_axis_stride: u32,
    output_axis_stride: u32,
    tiles: u32,                 // tiles of a slice in this window
    exclusive: u32,             // 1: each result leaves its own element out
    resume: u32,                // 1: an earlier window left its state in `state`
    suspend: u32,               // 1: a later window will resume from `state`
    grid_width: u32,            // workgroups in a row of the grid
    mode: u32,                  // rounding mode: 0 half to even, 1 toward zero, 2 half away from zero
    zero: u32,                  // 0, unknown to the compiler
    carry_side: u32,            // of tiles: which of a slice's two carries the window begins with, 0 or 1
    checked_first: u32,         // of scan_slices: elements of the slice before the first of the windows that are
                                // checked together
    turn_first: u32,            // of scan_repair: the first tile of its turn
    turn_tiles: u32,            // of scan_repair: the tiles of a turn
    lookback: u32,              // of what comes behind scan_lookback 1, before it 2, of both where it leaves all 16;
                                // of scan_strip_lookback and what comes behind it 5, before it 6, where its parts are
                                // tiles 13 and 14
    side_by_side: u32,          // of scan_serial_*: 1 where neighbours in memory belong to different slices
    across: u32,                // of strips: slices whose elements follow each other without any gap
}

@group(0) @binding(0) var<uniform> params: Params;

// The number of a workgroup in a grid that may be wider than one dimension allows.
fn workgroup_number(id: vec3<u32>) -> u32 {
    return id.y * params.grid_width + id.x;
}

// Whether there is at most one dimension. A constant, because software drivers walk the loop below in any case.
override flat: bool = false;

// The width of the input's elements: 3, 4, 5 or 6 for 8, 16, 32 or 64 bits.
override input_log2_bits: u32 = 5u;

struct Place {
    input: u32,
    output: u32,
}

// Where slice (or element) `index` begins. Modulo 2^32, which is exact because every true position is in range.
fn place_of(index: u32) -> Place {
    var place = Place(params.input_offset, params.output_offset);
    if (flat) {
        place.input += index * params.input_strides[0].x;
        place.output += index * params.output_strides[0].x;
        return place;
    }
    var rest = index;
    for (var d = 0u; d < params.rank; d += 1u) {
        let size = params.sizes[d >> 2u][d & 3u];
        let coordinate = rest % size;
        rest /= size;
        place.input += coordinate * params.input_strides[d >> 2u][d & 3u];
        place.output += coordinate * params.output_strides[d >> 2u][d & 3u];
    }
    return place;
}
