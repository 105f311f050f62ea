"""C kernels: print loop IR as C, build it, call it."""
