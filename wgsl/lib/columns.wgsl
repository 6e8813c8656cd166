// Rows of adjacent slices of 8 or 16 bits, a word at a time. Needs output_owned.

// Adjacent slices of an invocation: 4 of 8 bits, 2 of 16.
override columns: u32 = 4u;

// A run of each; c and d have no meaning where there are two.
struct Columns {
    a: Run,
    b: Run,
    c: Run,
    d: Run,
}

alias Rows = array<u32, 16>;

fn row_at(place: u32) -> u32 {
    return input_word(place >> (5u - input_log2_bits));
}

fn element_of(row: u32, column: u32) -> Accumulator {
    return decode(vec2<u32>(extractBits(row, column << input_log2_bits, 1u << input_log2_bits), 0u));
}

// The rows of `count` elements (1 to 16) from `place` on, a word each; what follows them is without meaning.
fn load_rows(place: u32, stride: u32, count: u32) -> Columns {
    let last = count - 1u;
    let rows = Rows(
        row_at(place), row_at(place + min(1u, last) * stride),
        row_at(place + min(2u, last) * stride), row_at(place + min(3u, last) * stride),
        row_at(place + min(4u, last) * stride), row_at(place + min(5u, last) * stride),
        row_at(place + min(6u, last) * stride), row_at(place + min(7u, last) * stride),
        row_at(place + min(8u, last) * stride), row_at(place + min(9u, last) * stride),
        row_at(place + min(10u, last) * stride), row_at(place + min(11u, last) * stride),
        row_at(place + min(12u, last) * stride), row_at(place + min(13u, last) * stride),
        row_at(place + min(14u, last) * stride), row_at(place + min(15u, last) * stride),
    );
    var loaded = Columns();
    loaded.a = column_of(rows, 0u);
    loaded.b = column_of(rows, 1u);
    if (columns == 4u) {
        loaded.c = column_of(rows, 2u);
        loaded.d = column_of(rows, 3u);
    }
    return loaded;
}

fn column_of(rows: Rows, column: u32) -> Run {
    return Run(
        element_of(rows[0], column), element_of(rows[1], column),
        element_of(rows[2], column), element_of(rows[3], column),
        element_of(rows[4], column), element_of(rows[5], column),
        element_of(rows[6], column), element_of(rows[7], column),
        element_of(rows[8], column), element_of(rows[9], column),
        element_of(rows[10], column), element_of(rows[11], column),
        element_of(rows[12], column), element_of(rows[13], column),
        element_of(rows[14], column), element_of(rows[15], column),
    );
}

fn store_row(place: u32, a: Accumulator, b: Accumulator, c: Accumulator, d: Accumulator) {
    var word = (encode(a).x & 0xffffu) | (encode(b).x << 16u);
    if (columns == 4u) {
        word = (encode(a).x & 0xffu) | ((encode(b).x & 0xffu) << 8u);
        word |= ((encode(c).x & 0xffu) << 16u) | (encode(d).x << 24u);
    }
    set_output_word(place >> (5u - output_log2_bits), word);
}

// Stores the first `count` rows (1 to 16).
fn store_rows(place: u32, stride: u32, count: u32, run: Columns) {
    store_row(place, run.a[0], run.b[0], run.c[0], run.d[0]);
    if (1u < count) {
        store_row(place + 1u * stride, run.a[1], run.b[1], run.c[1], run.d[1]);
    }
    if (2u < count) {
        store_row(place + 2u * stride, run.a[2], run.b[2], run.c[2], run.d[2]);
    }
    if (3u < count) {
        store_row(place + 3u * stride, run.a[3], run.b[3], run.c[3], run.d[3]);
    }
    if (4u < count) {
        store_row(place + 4u * stride, run.a[4], run.b[4], run.c[4], run.d[4]);
    }
    if (5u < count) {
        store_row(place + 5u * stride, run.a[5], run.b[5], run.c[5], run.d[5]);
    }
    if (6u < count) {
        store_row(place + 6u * stride, run.a[6], run.b[6], run.c[6], run.d[6]);
    }
    if (7u < count) {
        store_row(place + 7u * stride, run.a[7], run.b[7], run.c[7], run.d[7]);
    }
    if (8u < count) {
        store_row(place + 8u * stride, run.a[8], run.b[8], run.c[8], run.d[8]);
    }
    if (9u < count) {
        store_row(place + 9u * stride, run.a[9], run.b[9], run.c[9], run.d[9]);
    }
    if (10u < count) {
        store_row(place + 10u * stride, run.a[10], run.b[10], run.c[10], run.d[10]);
    }
    if (11u < count) {
        store_row(place + 11u * stride, run.a[11], run.b[11], run.c[11], run.d[11]);
    }
    if (12u < count) {
        store_row(place + 12u * stride, run.a[12], run.b[12], run.c[12], run.d[12]);
    }
    if (13u < count) {
        store_row(place + 13u * stride, run.a[13], run.b[13], run.c[13], run.d[13]);
    }
    if (14u < count) {
        store_row(place + 14u * stride, run.a[14], run.b[14], run.c[14], run.d[14]);
    }
    if (15u < count) {
        store_row(place + 15u * stride, run.a[15], run.b[15], run.c[15], run.d[15]);
    }
}
