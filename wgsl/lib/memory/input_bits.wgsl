// The width of the input's elements: 3, 4, 5 or 6 for 8, 16, 32 or 64 bits.

override input_log2_bits: u32 = 5u;
