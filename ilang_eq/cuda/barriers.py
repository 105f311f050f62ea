"""Puts a barrier before whatever touches what other threads have touched since the last one, one of them writing.

A barrier stands as far out as it can: before the outermost loop that holds none of what came before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ilang_eq.cuda.accesses import Access, Anyone, Scope, touched
from ilang_eq.cuda.nodes import Barrier, Block, Combine, Contract, Copy, Launch, Leaf, Node, Sweep
from ilang_eq.cuda.storage import Home
from ilang_eq.lower.ir import Accumulate, Assign

Pending = frozenset[Access]


def with_barriers(launch: Launch, homes: Mapping[str, Home]) -> Launch:
    """``launch`` with barriers; the tasks of a block follow each other like iterations of a loop."""
    placer = _Placer(homes, launch.block)
    return replace(launch, body=placer.loop(launch.body, frozenset(), Scope())[0])


class _Placer:
    """Walks the nodes with the accesses since the last barrier.

    A loop is walked once more than it takes for nothing to change, and so are those inside, each time: what is known of
    a place in the tree (nodes by identity, which the launch keeps alive) is found out once.
    """

    def __init__(self, homes: Mapping[str, Home], block: Block) -> None:
        self._homes = homes
        self._block = block
        self._touched: dict[tuple[int, ...], Pending] = {}
        self._loops: dict[tuple[tuple[int, ...], Pending], tuple[tuple[Node, ...], Pending]] = {}

    def loop(self, body: Sequence[Node], pending: Pending, scope: Scope) -> tuple[tuple[Node, ...], Pending]:
        """The body of a loop: what its end leaves pending meets its beginning."""
        key = (tuple(map(id, scope.path)), pending)
        if key not in self._loops:
            self._loops[key] = self._settled(body, pending, scope)
        return self._loops[key]

    def _settled(self, body: Sequence[Node], pending: Pending, scope: Scope) -> tuple[tuple[Node, ...], Pending]:
        nodes, after = self._block_of(body, pending, scope)
        while not after <= pending:
            again, more = self._block_of(body, pending | after, scope)
            if again == nodes and more <= pending | after:
                return nodes, pending | more
            nodes, after = again, after | more
        return nodes, pending | after

    def _block_of(self, body: Sequence[Node], pending: Pending, scope: Scope) -> tuple[tuple[Node, ...], Pending]:
        nodes: list[Node] = []
        for node in body:
            match node:
                case Sweep() if node.ahead:
                    begun = [access for copy in node.ahead for access in self._accesses(copy, scope)]
                    if _conflict(pending, frozenset(begun)):
                        nodes.append(Barrier())
                        pending = frozenset()
                    # every iteration begins with a barrier of its own
                    inside, after = self._block_of(node.body, frozenset(), scope.into(node))
                    pending |= after
                    nodes.append(replace(node, body=inside))
                case Sweep():
                    if _conflict(pending, self._within(node.body, scope.into(node))):
                        nodes.append(Barrier())
                        pending = frozenset()
                    inside, pending = self.loop(node.body, pending, scope.into(node))
                    nodes.append(replace(node, body=inside))
                case Copy() if node.ahead:
                    nodes.append(node)
                case Assign() | Accumulate() | Combine() | Copy() | Contract():
                    mine = self._accesses(node, scope)
                    if _conflict(pending, mine):
                        nodes.append(Barrier())
                        pending = frozenset()
                    pending |= mine
                    nodes.append(node)
                case _:
                    nodes.append(node)
                    scope = scope.after(node)
        return tuple(nodes), pending

    def _within(self, body: Sequence[Node], scope: Scope) -> Pending:
        found: Pending = frozenset()
        for node in body:
            match node:
                case Sweep():
                    found |= self._within(node.body, scope.into(node))
                case Assign() | Accumulate() | Combine() | Copy() | Contract():
                    found |= self._accesses(node, scope)
                case _:
                    scope = scope.after(node)
        return found

    def _accesses(self, leaf: Leaf, scope: Scope) -> Pending:
        """What a leaf touches outside its thread's registers. Where the target is there, one thread does it all."""
        key = (id(leaf), *map(id, scope.path))
        if key not in self._touched:
            self._touched[key] = self._outside_registers(leaf, scope)
        return self._touched[key]

    def _outside_registers(self, leaf: Leaf, scope: Scope) -> Pending:
        first = guarded(leaf, self._homes)
        found = [(place, written) for place, written in touched(leaf) if self._homes[place.buffer].where != "registers"]
        if isinstance(leaf, Contract):
            # what lies in shared memory is nobody's own, even if it could have been handed on in registers
            return frozenset(Access(place, written, (Anyone(), Anyone())) for place, written in found)
        return frozenset(
            Access(place, written, scope.who(leaf, place, self._block, first))
            for place, written in found
            if self._homes[place.buffer].buffer.role != "input"
        )


def guarded(leaf: Leaf, homes: Mapping[str, Home]) -> bool:
    """Whether only the first of the threads that would all do the same does ``leaf``: it writes to memory."""
    return not isinstance(leaf, Copy) and homes[leaf.target.buffer].where != "registers"


def _conflict(earlier: Pending, later: Pending) -> bool:
    return any(
        before.place.buffer == after.place.buffer
        and (before.written or after.written)
        and not before.same_thread(after)
        for before in earlier
        for after in later
    )
