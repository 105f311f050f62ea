"""Results that outlive the process: one row for each component, shapes, target, machine, threads, effort and rules.

Rows are of exact extents, because tails and tile sizes are judged at these, and because what ``optimize`` returns must
not depend on what was optimised before. A caller who wants one result for a range of extents rounds them first: a
kernel serves any shape.
"""
