// What a column of a band has in scratch memory between its blocks, behind what lib/suspects.wgsl has.

#import "lib/suspects.wgsl"

// Accumulators.
const PREFIX = 3u;         // what the results of a block begin with
const FINISHED = 4u;       // p, the fold of the tile's finished blocks
const TOTAL = 5u;          // of the block
const LAST = 6u;           // the last result of the block
// A word.
const EXCESS = 16u;        // of the tile so far
