// How the 256 invocations of a workgroup share a strip.

// Invocations beside each other; those below each have the next run.
override lanes: u32 = 16u;
// Columns of an invocation: 1 or 2; of the integers of a word as one.
override columns: u32 = 1u;
const LANES = 256u;
// Of a stretch: its blocks, and its rows.
override BLOCKS: u32 = 16u / lanes;
override ROWS: u32 = 256u * BLOCKS;
