// Adjacent slices of one invocation, a row of them at a time: of a run, only one row is in registers.
// Needs lib/progress_state.wgsl, lib/left_fold.wgsl and lib/order.wgsl.

// Adjacent slices of an invocation: 4 of 8 or 32 bits, 2 of 16 or 64. c and d have no meaning where there are two.
override columns: u32 = 4u;

#import <rows>

// For each slice, how the results of a run are made.
struct Started {
    joined: vec4<bool>,    // whether the first element is joined to r
    has_q: vec4<bool>,     // whether results begin with q
}

// Begins the run of element `i` of the slices, whose tile is `known` to be a left fold.
fn begin_runs(
    i: u32, known: vec4<bool>,
    a: ptr<function, Progress>, b: ptr<function, Progress>, c: ptr<function, Progress>, d: ptr<function, Progress>,
) -> Started {
    begin_run(known.x, a);
    begin_run(known.y, b);
    begin_run(known.z, c);
    begin_run(known.w, d);
    let has_q = vec4<bool>((*a).has_q, (*b).has_q, (*c).has_q, (*d).has_q);
    return Started(known & vec4<bool>(i > 0u), has_q & !known);
}

fn begin_run(known: bool, progress: ptr<function, Progress>) {
    if (known) {
        (*progress).r = (*progress).last;
    }
    (*progress).reach = unreached();
}

// Takes in the next row of a run, and writes its results.
fn scan_row(
    place: Place, joined: vec4<bool>, started: Started,
    a: ptr<function, Progress>, b: ptr<function, Progress>, c: ptr<function, Progress>, d: ptr<function, Progress>,
) {
    let row = row_at(place.input);
    let first = take_member(element_of(row, 0u), joined.x, started.has_q.x, a);
    let second = take_member(element_of(row, 1u), joined.y, started.has_q.y, b);
    var third = first;
    var fourth = first;
    if (columns == 4u) {
        third = take_member(element_of(row, 2u), joined.z, started.has_q.z, c);
        fourth = take_member(element_of(row, 3u), joined.w, started.has_q.w, d);
    }
    store_row(place.output, first, second, third, fourth);
}

fn take_member(item: Accumulator, joined: bool, has_q: bool, progress: ptr<function, Progress>) -> Accumulator {
    let before = (*progress).last;
    // Without branches, like all arithmetic that is inlined many times (docs/kernels.md).
    (*progress).r = select(item, combine((*progress).r, item), joined);
    (*progress).last = select((*progress).r, combine((*progress).q, (*progress).r), has_q);
    if (EXCEPTIONS && product) {
        (*progress).reach = reach((*progress).reach, item, (*progress).r);
    } else if (EXCEPTIONS) {
        (*progress).excess = max((*progress).excess, excess((*progress).last));
    }
    return select((*progress).last, before, params.exclusive == 1u);
}

fn row_after(place: Place, rows: u32) -> Place {
    return Place(place.input + rows * params.input_axis_stride, place.output + rows * params.output_axis_stride);
}

fn end_runs(
    i: u32, known: vec4<bool>,
    a: ptr<function, Progress>, b: ptr<function, Progress>, c: ptr<function, Progress>, d: ptr<function, Progress>,
) {
    end_run(i, known.x, a);
    end_run(i, known.y, b);
    if (columns == 4u) {
        end_run(i, known.z, c);
        end_run(i, known.w, d);
    }
}

fn end_run(i: u32, known: bool, progress: ptr<function, Progress>) {
    if (EXCEPTIONS && product) {
        let of_run = excess_of_reach((*progress).reach, (*progress).r, (*progress).has_q, (*progress).q);
        // Behind an infinity, elements that left folds have zeros for would make NaN.
        let of_elements = select(0u, INFINITE, (*progress).reach.element < SMALL);
        (*progress).excess = max((*progress).excess, select(of_run, of_elements, known));
    }
    if (known) {
        (*progress).left = (*progress).last;
    }
    close_run((i >> RUN_SHIFT) % 256u, progress);
}

// Whether the tile's left fold is to be written: it is exceptional, or behind an infinity that may become NaN.
fn is_found(known: bool, progress: ptr<function, Progress>) -> bool {
    let is_wanted = !known | (product & (magnitude((*progress).carry.last) == INFINITE));
    return is_wanted & is_excessive((*progress).excess);
}

// Goes on to the tiles after those whose first row is at `place`, of `count` elements; writes the left folds of those
// that turn out to be exceptional. In a loop over the slices: written out, SwiftShader compiles it for a minute.
fn end_tiles(
    count: u32, place: Place, known: vec4<bool>,
    a: ptr<function, Progress>, b: ptr<function, Progress>, c: ptr<function, Progress>, d: ptr<function, Progress>,
) {
    var found = vec4<bool>(false);
    if (EXCEPTIONS) {
        found = vec4<bool>(is_found(known.x, a), is_found(known.y, b), is_found(known.z, c), is_found(known.w, d));
        let present = vec4<bool>(
            has_base((*a).carry), has_base((*b).carry), has_base((*c).carry), has_base((*d).carry),
        );
        var last = array<Accumulator, 4>((*a).carry.last, (*b).carry.last, (*c).carry.last, (*d).carry.last);
        for (var i = 0u; i < columns; i += 1u) {
            if (found[i]) {
                last[i] = write_left_fold(present[i], last[i], place.input + i, place.output + i, count);
            }
        }
        (*a).left = select((*a).left, last[0], found.x);
        (*b).left = select((*b).left, last[1], found.y);
        (*c).left = select((*c).left, last[2], found.z);
        (*d).left = select((*d).left, last[3], found.w);
    }
    close_tile(a, known.x | found.x);
    close_tile(b, known.y | found.y);
    close_tile(c, known.z | found.z);
    close_tile(d, known.w | found.w);
}
