// Groups of adjacent columns, `in_group` each, or fewer where a row of neighbours ends. Needs `in_group`.

struct Group {
    first: u32,                   // column
    count: u32,                   // of columns
}

fn groups_across() -> u32 {
    return (params.across - 1u) / in_group + 1u;
}

fn group_count() -> u32 {
    return params.count / params.across * groups_across();
}

fn group_at(number: u32) -> Group {
    let across = groups_across();
    let within = number % across * in_group;
    return Group(number / across * params.across + within, min(in_group, params.across - within));
}
