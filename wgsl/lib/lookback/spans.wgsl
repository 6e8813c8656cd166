// How a workgroup of scan_lookback learns of the spans before its own. Needs lib/lookback/span.wgsl.

// Spans to look back at: at first, and at most.
const FEW_SPANS = 4u;
const MANY_SPANS = 64u;
const NONE = 0xffffffffu;

// Of the spans before, the nearest first: totals, or a prefix, and bounds.
var<workgroup> spans: array<Accumulator, 64>;
var<workgroup> span_bounds: array<Bounds, 64>;
// How far back the nearest prefix is.
var<workgroup> nearest: atomic<u32>;
var<workgroup> is_unsafe: atomic<u32>;
var<workgroup> far: u32;
// The fold of all spans before.
var<workgroup> s: Accumulator;
var<workgroup> has_s: bool;

fn begin_looks() {
    atomicStore(&nearest, NONE);
    atomicStore(&is_unsafe, 0u);
    forget_missing();
    far = FEW_SPANS;
    looking = LOOKS;
}

// Looks once for the prefix of a span before, and for the totals of those behind it.
fn look_at_spans(lane: u32, at: Position, look: u32) {
    let back = lane + 1u;
    let is_mine = lane < workgroupUniformLoad(&far);
    let is_span = is_mine && back <= at.span;
    let word = span_record(at.slice, at.span - min(back, at.span));
    var flags = 0u;
    if (is_span) {
        flags = state_word(word + PREFIX_FLAGS);
    }
    // Before the window's first span there is what it begins with.
    if ((is_mine && back == at.span + 1u) || flags != 0u) {
        atomicMin(&nearest, back);
    }
    workgroupBarrier();
    let near = atomicLoad(&nearest);
    if (is_span && back < near) {
        let total = read_total(word);
        spans[lane] = total.value;
        span_bounds[lane] = total.bounds;
        if (!total.written) {
            note_missing();
        }
    } else if (is_span && back == near) {
        let prefix = read_accumulator(word + PREFIX);
        spans[lane] = prefix.value;
        if ((flags & IS_SAFE) == 0u) {
            atomicStore(&is_unsafe, 1u);
        } else if (prefix.written == 0u) {
            note_missing();
        }
    }
    workgroupBarrier();
    if (lane == 0u) {
        if (near != NONE && (!is_missing() || atomicLoad(&is_unsafe) == 1u)) {
            looking = HAS_FOUND;
        } else {
            looking = select(LOOKS, GIVES_UP, look >= patience);
            far = select(far, min(4u * far, MANY_SPANS), near == NONE);
            atomicStore(&nearest, NONE);
            forget_missing();
        }
    }
}

// Folds the totals of spans behind the nearest prefix into s. By the first invocation.
fn fold_spans(at: Position) {
    let near = atomicLoad(&nearest);
    var fold = checked(start.s);
    var present = start.has_s;
    if (near <= at.span) {
        fold = spans[near - 1u];
        present = true;
    }
    for (var back = near - 1u; back > 0u; back -= 1u) {
        if (EXCEPTIONS && is_span_suspect(present, fold, span_bounds[back - 1u])) {
            atomicStore(&is_unsafe, 1u);
        }
        fold = append(present, fold, spans[back - 1u]);
        present = true;
    }
    s = fold;
    has_s = present;
}

// What tile `i` of the span goes on from.
fn base_at(i: u32, at: Position) -> Accumulator {
    if (i > 0u || at.has_c) {
        return append(has_s, s, folds[i]);
    }
    return checked(s);
}

fn has_base_at(i: u32, at: Position) -> bool {
    return has_s || i > 0u || at.has_c;
}

// The result that these p, h and r make with what tile `i` of the span goes on from.
fn result_at(i: u32, at: Position, parts: array<Accumulator, 3>) -> Accumulator {
    return combine(combine(append(has_base_at(i, at), base_at(i, at), parts[0]), parts[1]), parts[2]);
}

// The last result before the tile.
fn result_before(at: Position) -> Accumulator {
    if (at.tile == 0u) {
        return start.last;
    }
    if (EXACT) {
        return base_at(at.before, at);
    }
    if (at.before > 0u) {
        return result_at(at.before - 1u, at, last_before);
    }
    return wait_for(span_record(at.slice, at.span - 1u) + SPAN_END);
}

// Finds out whether any tile of the span up to this one may be exceptional, by an invocation each.
fn look_at_bases(lane: u32, at: Position) {
    if (EXCEPTIONS && lane <= at.before && is_suspect(has_base_at(lane, at), base_at(lane, at), bounds[lane])) {
        atomicStore(&is_unsafe, 1u);
    }
}

// Whether neither this tile nor one before it may be exceptional.
fn is_proven_safe() -> bool {
    return looking == HAS_FOUND && atomicLoad(&is_unsafe) == 0u;
}
