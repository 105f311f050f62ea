"""Machine descriptions for the cost models, one TOML file each.

Units: elements (float32) per nanosecond for rates, bytes for capacities, GB/s for bandwidths (which is bytes per
nanosecond), nanoseconds for latencies, microseconds for overheads. Rates are what compiled loops reach, not
what a data sheet promises.

Invariants (``load`` enforces them):
  * every number is positive; levels grow in capacity, and the last one, main memory, is unbounded
  * no level is slower for all threads together than for one
"""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ilang_eq.errors import OptionError

_SHIPPED = Path(__file__).parent / "machines"
_CPUINFO = Path("/proc/cpuinfo")
_BITS_PER_ELEMENT = 32
_VARIABLE = "ILANG_EQ_MACHINE"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_TABLES = ("vector", "scalar", "levels")

Share = float
"""From 0 to 1."""

SHOWN = 0.3
"""The share of what is shorter that shows beside something longer, where no more is known of a machine."""
ASKED = 0.15
"""The same of what is asked for ahead (``c/ahead.py``). Of 0.3, 0.15, 0.1, 0.05 and 0, softmax and attention are ranked
best with this, and the other workloads of ``benchmarks.ranking`` alike, on Cascade Lake. On Zen 4 little shows: with
0.2 and 0.05 for both, 96.1 and 95.2 % of two samples' pairs are in order, and 95.8 and 95.0 with 0.3 and 0.15."""
WAITED = 672.0
"""``Machine.sums_wait`` where no more is known: all of a tile is waited for, 3 times as long as for the byte where 224
instructions are looked ahead. On Zen 4 a tile of 32 × 8 whose sums come out of the second level takes 40 cycles besides
its 256 for 16 steps, and 55 with them in the nearest: a half ranks best (0: 95.5 and 94.5 % of pairs)."""
ALONE = 1.35
"""How many times as long functions take in loops over single vectors; in tiles, too, where nothing else is known."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Elements per nanosecond on one core, operands in registers."""

    add: float
    mul: float
    fma: float
    div: float
    exp: float
    ln: float
    pow: float
    max: float
    compare: float


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the memory hierarchy.

    Args:
        name: as in ``explain()``.
        bytes: capacity, per core or (if ``shared``) in all.
        way_bytes: addresses this far apart compete for the same few lines; a line's 64 where they are hashed.
        shared: do all cores share it?
        bandwidth: GB/s out of it to one thread.
        bandwidth_all: GB/s out of it to all threads together.
        latency: nanoseconds from load to use.
        written: what a byte written into it costs, against one read: it is fetched first, and written back later.
        abreast: times these bandwidths with which several rows come that are read side by side.
        lasts: times its bytes of which nothing stays until it comes round again (``footprint.OVERFLOWS``).
        split_lasts: the same of lines in which two vectors each lie, if these compete for few places
            (``footprint.DRIVES_OUT``).
        turns: times its latency that a page waits which is read in turns with those of other rows.
        loaded: times its latency that lines wait which nobody sees coming, under the load of neighbours.
    """

    name: str
    bytes: float
    way_bytes: int
    shared: bool
    bandwidth: float
    bandwidth_all: float
    latency: float
    written: float = 1.25
    abreast: float = 1.0
    lasts: float = 1.4
    split_lasts: float = 2.7
    turns: float = 0.0
    loaded: float = 1.0

    @property
    def loaded_latency(self) -> float:
        """Nanoseconds from load to use of what nobody sees coming."""
        return self.loaded * self.latency


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor as the cost models see it.

    Args:
        name: of the description.
        cores: threads that run at once.
        vector_bits: width of a vector as compiled code uses them.
        vector_registers: how many vectors the register file names.
        clock_ghz: sustained clock.
        issue_width: instructions per cycle, scalar or vector.
        chain_cycles: from one accumulation to the next that needs its result.
        adder_cycles: the same of what adders do: of an addition without a multiplication, of the larger or the smaller.
        kernel_us: starting a kernel.
        fork_join_us: entering and leaving a parallel loop.
        vector, scalar: throughput of vectorised and of scalar code.
        levels: from the first-level data cache to main memory.
        fma_with_add: how long a multiply-add takes with an addition beside it, in times of one alone: 2 if they share
            ports, 1 if each has its own.
        streams: rows side by side that prefetchers follow. 32 pages are what the one beside the second-level cache of
            Intel's processors keeps an eye on. Sums of 64 MiB of rows of 5000 floats, a line of each in turn, take 2.3
            to 2.5 ms on Zen 3 with 8 to 16 rows side by side and 3.8, 4.4 and 5.1 with 20, 24 and 32; in fours of lines
            2.2 with 10 and 12, 2.8 and 2.9 with 14 and 16, and 7.4 to 7.7 with 20 to 32.
        page_streams: those of one page that they follow, if each is read a line or two at a time; of more they lose
            some (``footprint.LOSES_NEAR``).
        restarts: bytes at the start of each of several rows of a page that come unforeseen: one row by itself they
            follow into the next. 448 on Zen 3, where rows of 256 and 512 floats take 20 to 25 ns each two to twelve at
            a time.
        by_instruction: do prefetchers see rows by the instruction that loads them? On Zen 5; ``page_streams`` and
            ``restarts`` say nothing then (``extract/prefetchers.py``).
        walk_ns: finding a page that no translation buffer has the address of, in a virtual machine's tables, less what
            an out-of-order core hides. 7.0 is of Emerald Rapids, from reading a float from each of so many pages.
        runs_on: bytes in order that prefetchers bring while a core computes something else; 0 where that is unknown.
            Softmax of 26 MB in short rows takes, on Zen 5, as long in tiles of up to 6 KB, and 1.2 to 1.5 times as long
            in those of 8 and more. On Emerald Rapids as far ahead as rows in order are asked for (``c/along.py``): the
            variance of 40 MB in rows of 48 to 400 floats takes 1.0 to 1.2 times as long as out of the second level in
            tiles of up to 4 KB, and 1.2 to 1.5 times in those of 13 and more.
        in_flight: unforeseen lines that a core waits for at a time. As Intel's cores from Skylake on have line-fill
            buffers; on Zen 3, whose latency as measured has the time in it that finding a page takes, 64 rows side by
            side take 6 to 7 ns a line of 258.
        split_cycles: what a line of rows gone through in order takes more, as NumPy's arrays begin 16 bytes into one.
            With vectors as long as a line each lies in two, with shorter ones only some.
        split_part_cycles: the same of parts of rows out of the second level, as long as the nearest cache has not got
            them: 1.5 for 64 bytes in two lines, on top of moving both; 0.8 to 1.8 in tiles of 16 and 24 columns on
            Zen 3, 0.5 to 1.9 in those of 32 and 64 on Cascade Lake, 0.05 to 0.15 on Zen 5 (papers_notes/ecm.md).
        split_hides: the share of the time in which computing loads nothing that such lines take instead of any more. On
            Emerald Rapids a sum of rows of the second level takes 2.4 cycles a line in two parts and 1.4 a whole one,
            an exponential as long with either, and a step of a tile of 8×48, 12×32 and 6×64 sums that reads rows 768 to
            3840 bytes apart 12.4 to 14.5, 12.9 to 14.8 and 13.6 to 16.2, with whole lines 11.6 to 12.7.
        split_store_cycles: what a sum takes more that comes and goes in vectors as long as lines, if each lies in two.
            On Emerald Rapids blocks of 16 to 64 steps of 8×48 sums, 24 vectors, take 42 to 73 cycles longer if the
            result begins 16 bytes into a line (64×2048×2048, 64×512×512, 64×2048×256).
        split_again: the share of lines in two parts that are read again if the nearest translation buffer has not got
            their page. All on Cascade Lake; none on Emerald Rapids, where 64×2048×2048 takes 5.3 ms in columns of 48
            floats of 256 rows, unpacked, and by the model 8.1 if they were.
        spill_slots: instructions in the time of which an accumulator goes to memory and back: stores go one a cycle.
        alone: how many times as long functions take that go one vector at a time through a tile that sums them.
            Weighted sums of exponentials take 9.4 to 9.6 cycles a vector on Zen 4 in 16 and 24 rows of one vector, and
            9.1 to 9.5 in four to eight rows of several.
        broadcasts: elements a nanosecond that are loaded and spread over a whole register, where one of the two units
            that multiply and one of the two that add can do it, beside their own work; infinite where loads do it.
        port_bits: width of the units that compute and load. A longer vector takes several of their cycles, a shorter
            one as long as a whole one. Above ``vector_bits`` it counts as that.
        window: instructions that a core looks ahead: sums that are shorter overlap with the next ones, and accumulators
            are waited for the less, the more there are. That of Cascade Lake; Zen 3's is 256, but its other figures go
            with this one (Agner Fog, The Microarchitecture of Intel, AMD and VIA CPUs).
        hides: the share of waiting for lines and pages that nobody sees coming which computing hides. All on Zen 4,
            most of it on Zen 3; none of it out of memory on Emerald Rapids.
        hides_cached: the same of lines out of caches, if that is more. All on Emerald Rapids. Out of the second level a
            float each of 12 to 96 rows 4 KiB apart, which share 12 places of the nearest cache, takes as long as of 8,
            and 1024³ 15.6 ms in tiles of 14 × 32, not 26.3 as the model had it; out of the last one, 64×2048×2048 in
            columns of 48 floats of 64 and 128 rows 3.65 and 3.54 ms, of which computing is 3.47 and 3.42, where waiting
            would make it 4.5 and 4.7 (papers_notes/ecm.md).
        early: do prefetchers ask so early for what comes out of a core's own caches that little of it shows beside
            computing, as of what comes from beyond them (``overlap.UNDER``), and nothing of what goes on from start to
            end? On Zen 5.
        past_caches: do rows take less time past the caches, beside what computes the next (``lower/late.py``)? Not on
            Intel's servers from Skylake to Cascade Lake.
        fetched: what a byte that is written to memory through the caches counts as at least, where others go past them:
            it is fetched first. Norms of rows take 1.3 to 1.8 times as long so on Zen 4 as past the caches. On Zen 5,
            where 64 MiB are read in 1.4 ms, copies take 3.05, and past the caches 2.4.
        past: what one counts as that goes past them.
        shown: the share of moving data out of some level that shows beside something longer.
        shown_cached: of that, the share that shows beside computing, if it comes out of a cache. A step of the tiles of
            ``split_hides`` reads whole lines of the second level in 11.6 to 12.7 cycles on Emerald Rapids, of which
            multiply-adds take 12.
        asked: the same where it is asked for ahead (``c/ahead.py``).
        sums_wait: the cost of a byte of an accumulator that comes from a cache, against one unforeseen, for a core that
            looks one instruction ahead.
        entry_cycles: setting up the loop around a register tile, and leaving it, where accumulators are waited for.
        softness: how soft ceilings are that are nearly reached at once: their norm of this order counts. Of 23 register
            tiles in the nearest cache, most take within 4 % of that of order 6 on Cascade Lake; of 19 on Zen 3, from
            1 × 32 to 12 × 8, all are within 5 % of the highest ceiling.
    """

    name: str
    cores: int
    vector_bits: int
    vector_registers: int
    clock_ghz: float
    issue_width: float
    chain_cycles: float
    kernel_us: float
    fork_join_us: float
    vector: Rates
    scalar: Rates
    levels: tuple[Level, ...]
    adder_cycles: float = 4.0
    fma_with_add: float = 2.0
    streams: int = 32
    page_streams: int = 32
    restarts: float = 0.0
    by_instruction: bool = False
    walk_ns: float = 7.0
    runs_on: float = 0.0
    in_flight: float = 10.0
    split_cycles: float = 1.2
    split_part_cycles: float = 0.75
    split_hides: Share = 0.0
    split_store_cycles: float = 0.0
    split_again: Share = 1.0
    entry_cycles: float = 4.0
    softness: float = 6.0
    shown: Share = SHOWN
    shown_cached: Share = 1.0
    asked: Share = ASKED
    sums_wait: float = WAITED
    spill_slots: float = 6.0
    alone: float = ALONE
    port_bits: int = 2048
    broadcasts: float = float("inf")
    window: float = 224.0
    hides: Share = 0.0
    hides_cached: Share = 0.0
    early: bool = False
    past_caches: bool = True
    fetched: float = 2.0
    past: float = 1.0

    @property
    def lanes(self) -> int:
        """Elements in a vector."""
        return self.vector_bits // _BITS_PER_ELEMENT

    @property
    def port_lanes(self) -> int:
        """Elements below which a vector takes as long as one of so many."""
        return min(self.vector_bits, self.port_bits) // _BITS_PER_ELEMENT


def names() -> tuple[str, ...]:
    """The descriptions that come with the package."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _SHIPPED.iterdir()))


def load(name_or_path: str | Path) -> Machine:
    """The machine called ``name_or_path``, or described by the TOML file there.

    Raises:
        OptionError: no such machine, or a faulty description; every fault is listed.
    """
    if str(name_or_path) in names():
        return _parse((_SHIPPED / f"{name_or_path}.toml").read_text(encoding="utf-8"), str(name_or_path))
    path = Path(name_or_path)
    if not path.is_file():
        raise OptionError(
            f"no machine description {str(name_or_path)!r}",
            expected="the path of a TOML file, or a name",
            legal=names(),
        )
    return _parse(path.read_text(encoding="utf-8"), str(path))


def detect() -> Machine:
    """The description of this processor, with the number of cores this process may use.

    That is what ``$ILANG_EQ_MACHINE`` names, a description or a file; else what ``calibrate`` found out about this
    processor; else the default of its family.

    Raises:
        OptionError: ``$ILANG_EQ_MACHINE`` names nothing, or a faulty description.
    """
    named = os.environ.get(_VARIABLE)
    if named:
        machine = load(named)
    else:
        machine = load(user_file()) if user_file().is_file() else family()
    return dataclasses.replace(machine, cores=available_cores())


def family() -> Machine:
    """The default for this processor's family. One of no known family is taken for a plain x86-64: models only rank."""
    flags = frozenset(_cpuinfo("flags").split())
    return load(_family(platform.machine().lower(), flags, _cpuinfo("vendor_id")))


def user_file() -> Path:
    """Where this user's description of this processor is kept, one file for each model of processor.

    ``$ILANG_EQ_MACHINE`` if that is set and no description that comes with the package; else in ``$XDG_CONFIG_HOME``.
    """
    named = os.environ.get(_VARIABLE)
    if named and named not in names():
        return Path(named)
    model = f"{platform.machine()}-{_cpuinfo('model name')}"
    return config_directory() / f"machine-{_NOT_IN_NAMES.sub('_', model.lower())}.toml"


def config_directory() -> Path:
    """Where this user's descriptions are kept."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ilang_eq"


def dump(machine: Machine) -> str:
    """``machine`` as TOML, which ``load`` reads."""
    lines = [_entry(name, getattr(machine, name)) for name in _FIELDS if name not in _TABLES]
    lines += ["", "# elements per nanosecond on one core"]
    for table, rates in (("vector", machine.vector), ("scalar", machine.scalar)):
        lines += [f"[{table}]", *(_entry(name, getattr(rates, name)) for name in _RATES), ""]
    for level in machine.levels:
        lines += ["[[levels]]", *(_entry(name, getattr(level, name)) for name in _LEVEL), ""]
    return "\n".join(lines)


def _entry(name: str, value: object) -> str:
    match value:
        case bool():
            return f"{name} = {str(value).lower()}"
        case float() if value.is_integer():
            return f"{name} = {value:.1f}"
        case str():
            return f'{name} = "{value}"'
        case _:
            return f"{name} = {value}"


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _family(architecture: str, flags: frozenset[str], vendor: str) -> str:
    if architecture in ("aarch64", "arm64"):
        return "generic_arm64"
    long_vectors, amd = flags >= {"avx512f", "avx512dq", "avx512vl"}, vendor == "AuthenticAMD"
    if long_vectors and amd:
        return "x86_64_zen5" if "avx512_vp2intersect" in flags else "x86_64_zen4"
    if long_vectors:
        return "x86_64_sapphire_rapids" if "avx512_fp16" in flags else "x86_64_avx512"
    return "x86_64_zen" if amd and "avx2" in flags else "generic_x86_64"


def _cpuinfo(key: str) -> str:
    """What Linux says about the first processor; nothing elsewhere."""
    if not _CPUINFO.is_file():
        return ""
    lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.partition(":")[0].strip() == key), "")


def _parse(text: str, source: str) -> Machine:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{source} is not TOML: {error}") from error
    faults = list(_faults(data))
    if faults:
        raise OptionError(f"faulty machine description {source}: {'; '.join(faults)}", legal=names())
    return Machine(
        **{field: data[field] for field in _FIELDS if field in data and field not in _TABLES},
        vector=Rates(**data["vector"]),
        scalar=Rates(**data["scalar"]),
        levels=tuple(Level(**level) for level in data["levels"]),
    )


_FIELDS = {field.name: str(field.type) for field in dataclasses.fields(Machine)}
_RATES = {field.name: str(field.type) for field in dataclasses.fields(Rates)}
_LEVEL = {field.name: str(field.type) for field in dataclasses.fields(Level)}
_OPTIONAL = {
    field.name
    for table in (Machine, Level)
    for field in dataclasses.fields(table)
    if field.default is not dataclasses.MISSING
}


_MAY_BE_ZERO = {"turns", "restarts", "runs_on", "split_store_cycles"}


def _faults(data: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with a description; nothing if it can be used."""
    yield from _field_faults(data, _FIELDS, "")
    for table in ("vector", "scalar"):
        rates = data.get(table)
        if isinstance(rates, dict):
            yield from _field_faults(rates, _RATES, f"{table}.")
    levels = data.get("levels")
    if not isinstance(levels, list):
        return
    for number, level in enumerate(levels):
        yield from _field_faults(level, _LEVEL, f"levels[{number}].")
    if all(isinstance(level, dict) and not any(_field_faults(level, _LEVEL, "")) for level in levels):
        yield from _hierarchy_faults(levels)


def _field_faults(table: Mapping[str, object], fields: Mapping[str, str], prefix: str) -> Iterator[str]:
    yield from (f"{prefix}{name} is missing" for name in fields if name not in table and name not in _OPTIONAL)
    for name, value in table.items():
        if name not in fields:
            yield f"{prefix}{name} is unknown"
        elif not _fits(value, fields[name]) and not (name in _MAY_BE_ZERO and value == 0 and value is not False):
            yield f"{prefix}{name} is {value!r}, expected {_EXPECTED[fields[name]]}"


_EXPECTED = {
    "str": "text",
    "bool": "true or false",
    "int": "a positive whole number",
    "float": "a positive number",
    "Share": "a number from 0 to 1",
    "Rates": "a table of rates",
    "tuple[Level, ...]": "an array of tables",
}


def _fits(value: object, kind: str) -> bool:
    match kind:
        case "str":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool) and value > 0
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        case "Share":
            # descriptions used to say true or false
            return isinstance(value, int | float) and 0 <= value <= 1
        case "Rates":
            return isinstance(value, dict)
        case _:
            return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _hierarchy_faults(levels: list[dict[str, float]]) -> Iterator[str]:
    sizes = [level["bytes"] for level in levels]
    if not sizes or sizes[-1] != float("inf"):
        yield "the last of levels must have bytes = inf"
    if any(inner >= outer for inner, outer in pairwise(sizes)):
        yield "levels must grow in bytes"
    for number, level in enumerate(levels):
        if level["bandwidth_all"] < level["bandwidth"]:
            yield f"levels[{number}].bandwidth_all is below its bandwidth"
