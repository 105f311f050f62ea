"""The array libraries that kernels are measured against, each with the operations of ``benchmarks.formulas``."""
