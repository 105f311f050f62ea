from __future__ import annotations

import math
from pathlib import Path

import pytest

from ilang_eq.errors import OptionError
from ilang_eq.extract import machine
from ilang_eq.extract.machine import available_cores, detect, dump, family, load, names, user_file

TEXT = (Path(machine.__file__).parent / "machines" / "generic_x86_64.toml").read_text()


def test_the_shipped_machines() -> None:
    assert names() == (
        "generic_arm64",
        "generic_x86_64",
        "x86_64_avx512",
        "x86_64_sapphire_rapids",
        "x86_64_zen",
        "x86_64_zen4",
        "x86_64_zen5",
    )
    for name in names():
        described = load(name)
        assert described.name == name
        assert described.levels[0].name == "L1"
        assert math.isinf(described.levels[-1].bytes)
        assert described.lanes == described.vector_bits // 32
        assert described.vector.fma > described.scalar.fma


@pytest.mark.parametrize(
    ("architecture", "cpuinfo", "expected"),
    [
        ("aarch64", "Features : fp asimd", "generic_arm64"),
        ("arm64", None, "generic_arm64"),
        ("x86_64", "flags\t\t: fpu avx2 fma", "generic_x86_64"),
        ("x86_64", "flags\t\t: fpu avx512f avx512dq avx512vl", "x86_64_avx512"),
        ("x86_64", "flags\t\t: fpu avx512f avx512dq avx512vl avx512_fp16", "x86_64_sapphire_rapids"),
        ("x86_64", "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx2 fma", "x86_64_zen"),
        ("x86_64", "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx2 avx512f avx512dq avx512vl", "x86_64_zen4"),
        (
            "x86_64",
            "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx512f avx512dq avx512vl avx512_vp2intersect",
            "x86_64_zen5",
        ),
        ("x86_64", "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx fma4", "generic_x86_64"),
        ("x86_64", "vendor_id\t: GenuineIntel\nflags\t\t: fpu avx2 fma", "generic_x86_64"),
        ("AMD64", None, "generic_x86_64"),
        ("riscv64", None, "generic_x86_64"),
    ],
)
def test_detect_goes_by_the_processor(
    architecture: str, cpuinfo: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cpuinfo is not None:
        (tmp_path / "cpuinfo").write_text(f"processor : 0\n{cpuinfo}\n")
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine.platform, "machine", lambda: architecture)
    found = detect()
    assert found.name == expected
    assert found.cores == available_cores()


def test_a_description_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace('name = "generic_x86_64"', 'name = "mine"'))
    assert load(path).name == load(str(path)).name == "mine"


def test_pages_may_wait_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT + "turns = 0\n")
    assert load(path).levels[-1].turns == 0
    path.write_text(TEXT + "turns = false\n")
    with pytest.raises(OptionError, match="turns is False"):
        load(path)


@pytest.mark.parametrize(("written", "share"), [("0", 0.0), ("0.65", 0.65), ("true", 1.0), ("false", 0.0)])
def test_computing_hides_a_share_of_waiting(written: str, share: float, tmp_path: Path) -> None:
    """Descriptions used to say true or false."""
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace("cores = 8", f"cores = 8\nhides = {written}"))
    assert load(path).hides == share


def test_an_unknown_name_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no machine description 'pentium'") as raised:
        load("pentium")
    assert raised.value.legal == names()
    with pytest.raises(OptionError):
        load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("cores = 8", "", "cores is missing"),
        ("cores = 8", "cores = 0", "cores is 0, expected a positive whole number"),
        ("cores = 8", "cores = true", "cores is True"),
        ("cores = 8", "cores = 8\nsockets = 1", "sockets is unknown"),
        ("clock_ghz = 3.2", 'clock_ghz = "fast"', "clock_ghz is 'fast', expected a positive number"),
        ("fma = 6.4", "", "scalar.fma is missing"),
        ("fma = 6.4", "fma = -1.0", r"scalar.fma is -1.0"),
        ("shared = true", 'shared = "yes"', r"levels\[2\].shared is 'yes', expected true or false"),
        ("bytes = inf", "bytes = 1e9", "must have bytes = inf"),
        ("bytes = 524288", "bytes = 16384", "must grow in bytes"),
        ("bandwidth_all = 40.0", "bandwidth_all = 1.0", r"levels\[3\].bandwidth_all is below"),
        ("latency = 4.5", "latency = 4.5\nwritten = 0.0", r"levels\[1\].written is 0.0, expected a positive number"),
        ("cores = 8", "cores = 8\nhides = 1.5", "hides is 1.5, expected a number from 0 to 1"),
        ("cores = 8", "cores = ", "is not TOML"),
        ("[vector]", "vector = 1\n[other]", "vector is 1, expected a table of rates"),
        ("[[levels]]", "[[level]]", "levels is missing"),
    ],
)
def test_a_faulty_description_is_refused(old: str, new: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "faulty.toml"
    assert old in TEXT
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(OptionError, match=fault):
        load(path)


def test_every_fault_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "faulty.toml"
    path.write_text(TEXT.replace("cores = 8", "cores = 0").replace("exp = 1.7", ""))
    with pytest.raises(OptionError, match=r"cores is 0.*vector.exp is missing"):
        load(path)


def test_ports_of_adders_need_not_be_described(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TEXT)
    assert load(tmp_path / "mine.toml").fma_with_add == 2.0
    assert load("x86_64_zen").fma_with_add < 1.1


def test_a_description_is_written_as_it_is_read(tmp_path: Path) -> None:
    for name in names():
        (tmp_path / "copy.toml").write_text(dump(load(name)))
        assert load(tmp_path / "copy.toml") == load(name)


def test_a_named_description_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ILANG_EQ_MACHINE", raising=False)
    kept = user_file()
    assert kept.parent == tmp_path / "ilang_eq"
    assert detect().name == family().name
    kept.parent.mkdir()
    kept.write_text(TEXT.replace('name = "generic_x86_64"', 'name = "kept"'))
    assert detect().name == "kept"
    monkeypatch.setenv("ILANG_EQ_MACHINE", "generic_arm64")
    assert detect().name == "generic_arm64"
    assert user_file() == kept
    (tmp_path / "mine.toml").write_text(TEXT.replace('name = "generic_x86_64"', 'name = "mine"'))
    monkeypatch.setenv("ILANG_EQ_MACHINE", str(tmp_path / "mine.toml"))
    assert detect().name == "mine"
    assert user_file() == tmp_path / "mine.toml"
    monkeypatch.setenv("ILANG_EQ_MACHINE", str(tmp_path / "missing.toml"))
    with pytest.raises(OptionError, match="no machine description"):
        detect()


def test_every_model_of_processor_has_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ILANG_EQ_MACHINE", raising=False)
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("model name\t: Some(R) CPU @ 2.50GHz\n")
    one = user_file()
    (tmp_path / "cpuinfo").write_text("model name\t: Another CPU\n")
    assert user_file() != one
    assert "some_r_cpu_2_50ghz" in one.name
    monkeypatch.setattr(machine, "available_cores", lambda: available_cores() + 1)
    (tmp_path / "cpuinfo").write_text("model name\t: Some(R) CPU @ 2.50GHz\n")
    assert user_file() == one, "a process that may use fewer processors finds it too"
