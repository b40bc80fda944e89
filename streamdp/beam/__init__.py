"""The bounded-beam search: structures of flat arrays and the kernels that work on them."""
