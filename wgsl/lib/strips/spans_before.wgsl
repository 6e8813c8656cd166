// How a workgroup of scan_strip_lookback learns of the spans before its own. Needs lib/strips/look_back.wgsl.

// Spans to look back at: at first, and at most.
const FEW_SPANS = 2u;
const MANY_SPANS = 8u;

// What was found of each span, the nearest first.
var<workgroup> kinds: array<u32, 128>;
const IS_TOTAL = 1u;
const IS_PREFIX = 2u;
var<workgroup> far: u32;
// Of each column the fold of all spans before; then what results of the tile go on from.
var<workgroup> bases: array<Accumulator, 16>;

// Folds the span's tiles, and posts its total if this is the end of it.
fn fold_span(lane: u32, at: Part) {
    if (lane >= WIDTH) {
        return;
    }
    var c = c_of[lane];
    for (var i = 0u; i < at.before; i += 1u) {
        c = append(at.continues || i > 0u, c, found[i * WIDTH + lane]);
    }
    c_of[lane] = c;
    if (at.is_last && at.is_last_tile) {
        let total = append(at.has_c, c, total_of[lane]);
        total_of[lane] = total;
        let slice = slice_of_column(at.strip, lane);
        if (is_posting(at, slice)) {
            publish_accumulator(span_record(slice, at.span) + SPAN_TOTAL, total);
        }
    }
}

// Folds what was found of a column's spans, from the nearest prefix on or from what the window begins with. Returns
// whether that is there.
fn fold_spans(column: u32, span: u32, reach: u32) -> bool {
    var s = s_of[column];
    var present = (start & HAS_S) != 0u;
    var back = 1u;
    for (; back <= span; back += 1u) {
        if (back > reach) {
            return false;
        }
        let place = (back - 1u) * WIDTH + column;
        if (kinds[place] == 0u) {
            return false;
        }
        if (kinds[place] == IS_PREFIX) {
            s = found[place];
            present = true;
            break;
        }
    }
    for (back -= 1u; back > 0u; back -= 1u) {
        s = append(present, s, found[(back - 1u) * WIDTH + column]);
        present = true;
    }
    bases[column] = s;
    return true;
}

// Looks once for the prefix of a span before, and for the totals of those behind it.
fn look_at_spans(lane: u32, at: Part) -> bool {
    let column = lane % WIDTH;
    let slice = slice_of_column(at.strip, column);
    let is_there = slice < params.count;
    let back = lane / WIDTH + 1u;
    let reach = workgroupUniformLoad(&far);
    if (is_there && back <= min(reach, at.span)) {
        let word = span_record(slice, at.span - back);
        var reading = read_accumulator(word + PREFIX);
        var kind = select(0u, IS_PREFIX, reading.written == WRITTEN);
        if (kind == 0u) {
            reading = read_accumulator(word + SPAN_TOTAL);
            kind = select(0u, IS_TOTAL, reading.written == WRITTEN);
        }
        found[(back - 1u) * WIDTH + column] = reading.value;
        kinds[(back - 1u) * WIDTH + column] = kind;
    }
    workgroupBarrier();
    if (lane < WIDTH && is_there && !fold_spans(column, at.span, reach)) {
        note_missing();
    }
    return is_complete(lane);
}

// Finds the fold of all spans before. Returns whether it is there.
fn find_spans(lane: u32, at: Part) -> bool {
    if (lane == 0u) {
        far = FEW_SPANS;
    }
    for (var look = 0u; look <= patience; look += 1u) {
        if (look_at_spans(lane, at)) {
            return true;
        }
        if (lane == 0u) {
            far = min(2u * far, MANY_SPANS);
            forget_missing();
            verdict = u32(has_given_up(slice_of_column(at.strip, 0u)));
        }
        if (workgroupUniformLoad(&verdict) == 1u) {
            return false;
        }
    }
    return false;
}

// Computes what results of the part go on from, and posts the span's prefix if this is the end of it. All invocations
// call it.
fn settle(lane: u32, at: Part) {
    if (lane < WIDTH) {
        let s = bases[lane];
        var base = checked(s);
        if (at.has_c) {
            base = append(at.has_s, s, c_of[lane]);
        }
        s_of[lane] = s;
        bases[lane] = base;
        let slice = slice_of_column(at.strip, lane);
        if (at.is_last && at.is_last_tile && is_posting(at, slice)) {
            publish_accumulator(span_record(slice, at.span) + PREFIX, append(at.has_s, s, total_of[lane]));
        }
    }
    workgroupBarrier();
}

// Finds the last result before the part. Returns whether it is there. All invocations call it.
fn find_last(lane: u32, at: Part) -> bool {
    if (lane < WIDTH && at.number > 0u) {
        let slice = slice_of_column(at.strip, lane);
        if (EXACT) {
            last_of[lane] = bases[lane];
        } else if (slice < params.count) {
            last_of[lane] = wait_in_strip(slice, end_record(slice, at.number - 1u));
        }
    }
    return is_complete(lane);
}
