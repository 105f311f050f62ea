"""``calibrate``: a description of this machine, measured in a few seconds.

What is not measured, because the system does not tell or because there is one core only, is the default of the
processor's family. Rates are what compiled code reaches with operands in registers; bandwidths are of loads; the last
cache is as large as what it loses of arrays of some sizes tells the models, which on a virtual machine is less than the
system says.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf, sqrt
from pathlib import Path
from statistics import median

from ilang_eq.calibrate.caches import Cache, data_caches
from ilang_eq.calibrate.probes import Probe, Probes, cycle, ones
from ilang_eq.calibrate.source import ADDS, RATES, STRIP, UNITS
from ilang_eq.extract.footprint import FITS
from ilang_eq.extract.machine import Level, Machine, Rates, available_cores, dump, family, user_file

BUDGET_S = 5.0
"""When the rounds of probes end, at the latest; compiling and what was begun come on top."""
ROUNDS = 12
LINE = 64
_CHASE_S = 1e-4
_FLOAT_BITS = 32
_MEMORY_BYTES = (64 << 20, 256 << 20)
"""The arrays that stand for main memory are four times the last cache, within these bounds."""
_SHARES = (1.0, 0.75, 0.5, 0.35, 0.25)
"""Of the last cache, what is tried for how much of it stays there."""
_PAGE = 4096
_TOLD = (0.1, 0.9)
"""An array tells how large a cache is if this share of it is lost, neither nearly nothing nor nearly all."""
_UNLIKELY = 8
"""Times the family's latency of memory, which no machine takes: others had the core. A virtual machine that took 3.5
times as long once had 58 in a loud moment, with which a product of 16 steps was picked that takes twice its time."""
_STRIPS = ("exp", "ln", "pow")
_DIGITS = 3

Results = Mapping[str, float]
"""Nanoseconds a unit, by the name of the probe."""


def calibrate(path: str | Path | None = None) -> Machine:
    """Measure this machine, and keep its description where ``detect`` finds it.

    Takes less than 10 s on an otherwise idle machine. On a busy one every figure is that of the quietest moments.

    Args:
        path: the TOML file to write; if None, the one that ``detect`` reads.

    Raises:
        BuildError: no C compiler.
        OSError: ``path`` cannot be written.
    """
    machine = measured(Probes(), family(), available_cores())
    _write(Path(path) if path is not None else user_file(), dump(machine))
    return machine


def measured(probes: Probes, default: Machine, cores: int, budget_s: float = BUDGET_S) -> Machine:
    """The description of this machine with ``cores`` cores; where nothing can be measured, what ``default`` says."""
    deadline = time.perf_counter() + budget_s
    caches = data_caches() or _caches_of(default)
    asked = [*_core_probes(probes.lanes, cores), *_memory_probes(caches, cores)]
    ns = probes.nanoseconds(asked, ROUNDS, deadline)
    return replace(
        default,
        name=f"{default.name}-calibrated",
        cores=cores,
        vector_bits=probes.lanes * _FLOAT_BITS,
        vector_registers=probes.vector_registers,
        clock_ghz=_figure(1 / ns["tick"]),
        issue_width=_figure(ns["tick"] / ns["issued"]),
        chain_cycles=_figure(ns["chain"] / ns["tick"]),
        kernel_us=_figure(ns["kernel"] * 1e-3),
        fork_join_us=_figure(ns["fork-join"] * 1e-3) if cores > 1 else default.fork_join_us,
        vector=_rates("vector", ns),
        scalar=_rates("scalar", ns),
        fma_with_add=_figure(min(2.0, max(1.0, ns["fma with add"] / ns["vector fma"]))),
        levels=tuple(_levels(caches, ns, cores, default.levels)),
    )


def _core_probes(lanes: int, cores: int) -> Iterator[Probe]:
    """What a core does by itself, and what it takes to start the others."""
    small = ones(4 * STRIP * 2)
    for kind, width in (("vector", lanes), ("scalar", 1)):
        for rate in RATES:
            yield Probe(f"{kind} {rate}", f"{kind}_{rate}", STRIP if rate in _STRIPS else UNITS * width, small)
    yield Probe("fma with add", "vector_fma_with_add", UNITS * lanes, small)
    yield Probe("tick", "clock_ticks", ADDS, small)
    yield Probe("issued", "issued_instructions", 8 * ADDS, small)
    yield Probe("chain", "chain", ADDS, small)
    yield Probe("kernel", "kernel", 1, small)
    if cores > 1:
        yield Probe("fork-join", "fork_join", 1, small, cores)


def _memory_probes(caches: Sequence[Cache], cores: int) -> Iterator[Probe]:
    """Bandwidth and latency of every level, and the latency of several shares of the last cache."""
    for name, size, shared in _places(caches, cores):
        alone, together = ones(size), ones(size if shared else size * cores)
        yield Probe(f"{name} read", "read_all", alone.nbytes, alone)
        yield Probe(f"{name} read all", "read_all", together.nbytes, together, cores)
        if name == "memory":
            # rows a power of two apart would compete for a bank
            most = alone[: alone.size // 16 * 15]
            yield Probe("one row", "read_all", most.nbytes, most, typical=True)
            yield Probe("abreast", "read_abreast", most.nbytes, most, typical=True)
        both = alone if name == "memory" else ones(2 * size)
        yield Probe(f"{name} copy", "copy_all", both.nbytes / 2, both)
        yield _chase(f"{name} chase", size, name != "memory")
    if caches[-1].shared:
        *_, (_, kept, _), (_, lost, _) = _places(caches, cores)
        for name, size in _last_cache_sizes(caches[-1], cores).items():
            yield _typical_chase(name, size)
        yield _typical_chase("kept", kept)
        yield _typical_chase("lost", lost, warm=False)


def _last_cache_sizes(cache: Cache, cores: int) -> dict[str, int]:
    """The bytes that are tried in the last cache, by the name of the probe."""
    return {f"share {share}": _whole(cache.bytes * share, cores) for share in _SHARES}


def _chase(name: str, size: int, warm: bool = True) -> Probe:
    """The latency of ``size`` bytes; so short that what they evict meanwhile, neighbours do not count."""
    return Probe(name, "chase", 1, cycle(size, LINE), warm=warm, series_s=_CHASE_S)


def _typical_chase(name: str, size: int, warm: bool = True) -> Probe:
    """The same page by page, with what neighbours evict."""
    return Probe(name, "chase", 1, cycle(size, LINE, _PAGE), warm=warm, series_s=_CHASE_S, typical=True)


def _places(caches: Sequence[Cache], cores: int) -> Iterator[tuple[str, int, bool]]:
    """Every level with the bytes to try it with, more than the level before holds, and whether it is shared."""
    first, last = caches[0], caches[-1]
    yield f"L{first.level}", _whole(first.bytes / 2, cores), False
    for before, cache in pairwise(caches):
        below = before.bytes * (cores if cache.shared and not before.shared else 1)
        yield f"L{cache.level}", _whole(sqrt(below * cache.bytes / 2), cores), cache.shared
    least, most = _MEMORY_BYTES
    yield "memory", _whole(min(max(4 * last.bytes, least), most), cores), True


def _whole(size: float, cores: int) -> int:
    """``size`` in bytes, so that every core gets the same whole pages."""
    page = 4096 * cores
    return max(page, int(size) // page * page)


def _levels(caches: Sequence[Cache], ns: Results, cores: int, default: Sequence[Level]) -> Iterator[Level]:
    """The levels as measured; what is not measured of the last two is as in the ``default`` ones."""
    first, *_, last, usual = default
    for cache in caches:
        shared = cache is caches[-1] and cache.shared
        size = _effective_bytes(cache, ns, cores, last.lasts) if shared else cache.bytes
        level = _level(f"L{cache.level}", float(int(size)), cache.way_bytes, cache.shared, ns)
        family = last if shared else first if cache is caches[0] else level
        yield replace(level, lasts=family.lasts, split_lasts=family.split_lasts, loaded=family.loaded)
    abreast = max(1.0, ns["one row"] / ns["abreast"])
    memory = replace(_level("memory", inf, LINE, True, ns), abreast=_figure(abreast), turns=usual.turns)
    likely = memory.latency <= _UNLIKELY * usual.latency
    yield memory if likely else replace(memory, latency=usual.latency)


def _level(name: str, size: float, way: int, shared: bool, ns: Results) -> Level:
    alone, together = _figure(1 / ns[f"{name} read"]), _figure(1 / ns[f"{name} read all"])
    written = max(1.0, ns[f"{name} copy"] / ns[f"{name} read"] - 1.0)
    return Level(name, size, way, shared, alone, max(alone, together), _figure(ns[f"{name} chase"]), _figure(written))


def _effective_bytes(cache: Cache, ns: Results, cores: int, lasts: float) -> float:
    """The size at which the models expect of the last cache what it loses of arrays of several sizes.

    They expect that it keeps all of what takes up to ``FITS`` of it, and nothing of what takes ``lasts`` of it.
    """
    sizes = _last_cache_sizes(cache, cores)
    # where nothing takes longer, nothing is lost
    span = max(ns["lost"] - ns["kept"], ns["kept"])
    lost = {name: (ns[name] - ns["kept"]) / span for name in sizes}
    least, most = _TOLD
    told = [sizes[name] / (FITS + share * (lasts - FITS)) for name, share in lost.items() if least < share < most]
    whole = [size for name, size in sizes.items() if lost[name] <= least]
    return min(cache.bytes, median(told) if told else max(whole, default=min(sizes.values())))


def _rates(kind: str, ns: Results) -> Rates:
    return Rates(**{rate: _figure(1 / ns[f"{kind} {rate}"]) for rate in RATES})


def _caches_of(default: Machine) -> tuple[Cache, ...]:
    """The caches that the processor's family has."""
    return tuple(
        Cache(n, int(level.bytes), level.way_bytes, level.shared)
        for n, level in enumerate(default.levels[:-1], start=1)
    )


def _figure(value: float) -> float:
    """As many digits as a measurement is good for."""
    return float(f"{value:.{_DIGITS}g}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".machine-", delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)
