from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from ilang_eq.calibrate import calibration
from ilang_eq.calibrate.caches import Cache
from ilang_eq.calibrate.calibration import calibrate, measured
from ilang_eq.calibrate.probes import Probe, Probes
from ilang_eq.extract.footprint import room_of
from ilang_eq.extract.machine import Machine, detect, load

DEFAULT = load("generic_x86_64")
CACHES = (Cache(1, 1 << 15, 4096, False), Cache(2, 1 << 18, 32768, False), Cache(3, 1 << 20, 64, True))


class Pretended(Probes):
    """Probes that take what a table says, and one nanosecond otherwise."""

    def __init__(self, table: Mapping[str, float]) -> None:
        self.table = table
        self.asked: dict[str, Probe] = {}

    @property
    def lanes(self) -> int:
        return 8

    @property
    def vector_registers(self) -> int:
        return 16

    def nanoseconds(self, probes: Iterable[Probe], rounds: int, deadline: float) -> Mapping[str, float]:
        self.asked = {probe.name: probe for probe in probes}
        return {name: self.table.get(name, 1.0) for name in self.asked}


@pytest.fixture(autouse=True)
def _small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "data_caches", lambda: CACHES)
    monkeypatch.setattr(calibration, "_MEMORY_BYTES", (1 << 20, 1 << 22))


def _measured(table: Mapping[str, float], cores: int = 2) -> Machine:
    return measured(Pretended(table), DEFAULT, cores)


def test_figures_are_what_the_probes_say() -> None:
    found = _measured(
        {"tick": 0.25, "issued": 0.0625, "chain": 1.0, "vector fma": 0.02, "scalar exp": 4.0, "kernel": 30.0}
    )
    assert (found.clock_ghz, found.issue_width, found.chain_cycles) == (4.0, 4.0, 4.0)
    assert (found.vector.fma, found.scalar.exp, found.kernel_us) == (50.0, 0.25, 0.03)
    assert (found.cores, found.vector_bits, found.vector_registers) == (2, 256, 16)
    assert found.name == "generic_x86_64-calibrated"


def test_an_addition_takes_ports_of_its_own_or_those_of_a_multiply_add() -> None:
    """What a clock that jumps says beyond that is left out."""
    pairs = {together: _measured({"vector fma": 0.02, "fma with add": together}) for together in (0.01, 0.03, 0.05)}
    assert [found.fma_with_add for found in pairs.values()] == [1.0, 1.5, 2.0]


def test_levels_are_the_systems_and_main_memory() -> None:
    found = _measured({"L2 read": 0.01, "L2 read all": 0.006, "memory chase": 123.4, "memory read all": 2.0})
    assert [level.name for level in found.levels] == ["L1", "L2", "L3", "memory"]
    assert [level.bytes for level in found.levels] == [1 << 15, 1 << 18, 1 << 20, inf]
    assert (found.levels[1].bandwidth, found.levels[1].bandwidth_all) == (100.0, 167.0)
    assert found.levels[3].latency == 123.0
    assert found.levels[3].bandwidth_all == found.levels[3].bandwidth


def test_no_memory_is_as_far_as_a_busy_neighbour_makes_it_look() -> None:
    usual = DEFAULT.levels[-1].latency
    far, beyond = (_measured({"memory chase": times * usual}).levels[-1].latency for times in (7.0, 9.0))
    assert (far, beyond) == (pytest.approx(7.0 * usual, rel=0.01), usual)


@pytest.mark.parametrize(("side_by_side", "gain"), [(0.8, 1.25), (1.1, 1.0)])
def test_what_memory_gains_by_rows_side_by_side(side_by_side: float, gain: float) -> None:
    levels = _measured({"abreast": side_by_side}).levels
    assert [level.abreast for level in levels] == [1.0, 1.0, 1.0, gain]


@pytest.mark.parametrize("size", [1.0, 0.7, 0.4])
@pytest.mark.parametrize("lasts", [1.4, 2.1])
def test_the_last_cache_is_as_large_as_what_it_loses_tells(size: float, lasts: float) -> None:
    """A cache of a MiB, of which neighbours leave a part."""
    first, second, last, memory = DEFAULT.levels
    family = replace(DEFAULT, levels=(first, second, replace(last, lasts=lasts), memory))
    lost = {share: room_of(family.levels[2]).lost(share / size) for share in (1.0, 0.75, 0.5, 0.35, 0.25)}
    waits = {f"share {share}": 5.0 + 35.0 * part for share, part in lost.items()}
    found = measured(Pretended(waits | {"kept": 5.0, "lost": 40.0}), family, 2).levels[2]
    assert found.bytes == pytest.approx(size * (1 << 20), rel=0.01)
    assert found.lasts == lasts


def test_a_last_cache_that_loses_nothing_is_whole_and_one_that_loses_all_is_small() -> None:
    shares = [f"share {share}" for share in (1.0, 0.75, 0.5, 0.35, 0.25)]
    none, everything = (dict.fromkeys(shares, wait) | {"kept": 5.0, "lost": 40.0} for wait in (5.0, 40.0))
    assert _measured(none).levels[2].bytes == 1 << 20
    assert _measured(everything).levels[2].bytes == 1 << 18


def test_probes_work_in_the_level_they_are_named_for() -> None:
    pretended = Pretended({})
    measured(pretended, DEFAULT, 2)
    size = {name: probe.memory.nbytes for name, probe in pretended.asked.items()}
    assert size["L1 read"] < CACHES[0].bytes < size["L2 read"] < CACHES[1].bytes
    assert 2 * CACHES[1].bytes >= size["L3 read"] / 2
    assert size["L3 read"] < CACHES[2].bytes < size["memory read"]
    assert size["L2 read all"] == 2 * size["L2 read"]
    assert size["L3 read all"] == size["L3 read"]
    assert pretended.asked["memory read all"].threads == 2


def test_one_core_has_the_familys_fork_and_join() -> None:
    assert _measured({}, cores=1).fork_join_us == DEFAULT.fork_join_us
    assert _measured({"fork-join": 700.0}).fork_join_us == 0.7


def test_what_units_do_with_long_vectors_is_the_familys() -> None:
    family = replace(DEFAULT, port_bits=128, broadcasts=2.5, window=99.0, hides=True)
    found = measured(Pretended({}), family, 2)
    assert (found.port_bits, found.broadcasts) == (128, 2.5)
    assert (found.window, found.hides) == (99.0, True)


def test_what_prefetchers_follow_is_the_familys() -> None:
    *caches, memory = DEFAULT.levels
    first, *inner, last = caches
    levels = (replace(first, split_lasts=1.9), *inner, replace(last, loaded=3.0), replace(memory, turns=0.3))
    told = {
        "streams": 7,
        "page_streams": 3,
        "by_instruction": True,
        "early": True,
        "walk_ns": 3.0,
        "runs_on": 5e3,
        "split_cycles": 0.5,
        "split_part_cycles": 0.3,
        "entry_cycles": 7.0,
        "fetched": 1.7,
        "past": 0.8,
    }
    found = measured(Pretended({}), replace(DEFAULT, **told, levels=levels), 2)
    assert {name: getattr(found, name) for name in told} == told
    assert (found.levels[0].split_lasts, found.levels[-2].loaded, found.levels[-1].turns) == (1.9, 3.0, 0.3)


def test_a_system_that_does_not_tell_has_the_familys_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "data_caches", lambda: ())
    assert [level.bytes for level in _measured({}).levels] == [level.bytes for level in DEFAULT.levels]


def test_the_description_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "Probes", lambda: Pretended({"vector add": 0.1}))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ILANG_EQ_MACHINE", raising=False)
    before = detect()
    assert not before.name.endswith("-calibrated")
    machine = calibrate()
    assert detect() == machine
    assert detect().vector.add == 10.0
    assert calibrate(tmp_path / "elsewhere" / "mine.toml") == load(tmp_path / "elsewhere" / "mine.toml")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["mine.toml"]


@pytest.mark.long
def test_this_machine() -> None:
    found = calibrate()
    assert found.vector.fma > found.scalar.fma
    assert found.vector.exp > found.scalar.exp
    assert found.levels[0].bandwidth > found.levels[-1].bandwidth
    assert found.levels[0].latency < found.levels[-1].latency
