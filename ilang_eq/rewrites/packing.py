"""Packing: arguments of sums of products, and of outer differences, may be read from a copy that suits the loops.

A copy equals what it copies, so in the e-graph it would be the same class, and nothing could tell the two apart. It
has a constructor of its own, ``(Packed input dims)``, that they read beside ``(Read input dims)``. Extraction lays
a copy out and stages it like any other expression; on a CPU that is the packing of a matrix product (Goto).
"""

from __future__ import annotations

from ilang_eq.rewrites.rules import Rule

_OUTER = """
        (rule ((= m (Bin "{0}" a b)) (= a (Read n d)) (= b (Read o e))
               (!= (axes a) (axes m)) (!= (axes b) (axes m)) (= x (axes a)) (> (set-length x) 1))
              ((set (axes (Packed n d)) x) (union m (Bin "{0}" (Packed n d) b))))
        (rule ((= m (Bin "{0}" a b)) (= a (Read n d)) (= b (Read o e))
               (!= (axes a) (axes m)) (!= (axes b) (axes m)) (= x (axes b)) (> (set-length x) 1))
              ((set (axes (Packed o e)) x) (union m (Bin "{0}" a (Packed o e)))))
"""

PACKING = (
    Rule(
        "pack",
        "Σ_J a·b → Σ_J a·copy(b), for an argument b that is read again for every step of some axis of a",
        "packing",
        """
        (rule ((= t (Red "add" j m)) (= m (Bin "mul" a b)) (= b (Read n d)) (= x (axes b)) (!= x (axes m)))
              ((set (axes (Packed n d)) x) (union m (Bin "mul" a (Packed n d)))))
        (rule ((= t (Red "add" j m)) (= m (Bin "mul" a b)) (= a (Read n d)) (= x (axes a)) (!= x (axes m)))
              ((set (axes (Packed n d)) x) (union m (Bin "mul" (Packed n d) b))))
        """,
    ),
    Rule(
        "pack-outer",
        "a ∘ b → a ∘ copy(b), ∘ one of − + min max, for arguments that are each read again for every step of an axis "
        "of the other; copies of more than one axis",
        "packing",
        "".join(map(_OUTER.format, ("sub", "add", "min", "max"))),
    ),
)
