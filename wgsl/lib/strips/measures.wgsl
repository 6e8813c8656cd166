// The record of a column's tile: how large its values are, and its class, besides accumulators.
// Needs lib/strips/column.wgsl, lib/order/classes.wgsl and lib/tiles/state.wgsl.

// What an invocation has seen of them.
struct Measures {
    largest_r: u32,
    largest: u32,       // of a product; of a sum it follows
    smallest: u32,      // of a product
    class_word: u32,
}

var<workgroup> largest_r: array<atomic<u32>, 16>;
var<workgroup> largest: array<atomic<u32>, 16>;
var<workgroup> smallest: array<atomic<u32>, 16>;
var<workgroup> class_or: array<atomic<u32>, 16>;
var<workgroup> class_xor: array<atomic<u32>, 16>;

fn begin_measures(column: u32) {
    atomicStore(&largest_r[column], 0u);
    atomicStore(&largest[column], 0u);
    atomicStore(&smallest[column], INFINITE);
    atomicStore(&class_or[column], 0u);
    atomicStore(&class_xor[column], 0u);
}

// Takes in the class of a run. A sum has one only where an element is not finite, and then r is not.
fn classify_run(elements: Run, x: ptr<function, Column>, found: ptr<function, Measures>) {
    if (product || is_exceptional((*x).r[15])) {
        // Of whole tiles: nothing comes behind the last one, which alone may have fewer elements.
        (*found).class_word = join_classes((*found).class_word, class_bits_of_run(elements));
    }
}

// Takes in how large values are of a run of `count` elements, which goes on from `lead` inside the tile.
fn measure_run(lead: Lead, count: u32, x: ptr<function, Column>, found: ptr<function, Measures>) {
    if (count == 0u) {
        return;
    }
    if (product) {
        let start = start_of_run(lead, false, identity());
        let all = extent((*x).reach, (*x).r[15], start.has_q, start.q);
        (*found).largest_r = max((*found).largest_r, magnitude(of_size((*x).reach.largest)));
        (*found).largest = max((*found).largest, largest_of_extent(all));
        (*found).smallest = min((*found).smallest, all.smallest);
    } else {
        (*found).largest_r = max((*found).largest_r, excess_of_run((*x).r, count));
    }
}

fn post_measures(column: u32, found: Measures) {
    atomicMax(&largest_r[column], found.largest_r);
    atomicMax(&largest[column], found.largest);
    atomicMin(&smallest[column], found.smallest);
    atomicOr(&class_or[column], found.class_word);
    atomicXor(&class_xor[column], found.class_word & IS_NEGATIVE);
}

// Writes the record of a tile, which ends with the run `x` has, behind `lead`.
fn leave_record(column: u32, tile: u32, lead: Lead, x: ptr<function, Column>) {
    let slice = (*x).slice;
    if (slice >= params.count) {
        return;
    }
    let word = tile_word(slice, tile);
    set_tile_accumulator(slice, tile, TILE_TOTAL, (*x).p);
    set_tile_accumulator(slice, tile, TILE_P, lead.p);
    set_tile_accumulator(slice, tile, TILE_H, lead.h);
    set_tile_accumulator(slice, tile, TILE_R, (*x).r[15]);
    let r = atomicLoad(&largest_r[column]);
    set_state_word(word + TILE_LARGEST, select(largest_of_sum(r), atomicLoad(&largest[column]), product));
    set_state_word(word + TILE_LARGEST_R, r);
    let class_word = atomicLoad(&class_or[column]) & ~IS_NEGATIVE;
    set_state_word(word + TILE_CLASS, class_word | atomicLoad(&class_xor[column]));
    set_state_word(word + TILE_SMALLEST, atomicLoad(&smallest[column]));
}
