"""Programs that feed each other, as one library: what each makes, the weights file, and the shared workspace."""

from __future__ import annotations

import json
import random
import shutil
from math import prod
from pathlib import Path

import numpy as np
import pytest

from ilang_eq import Component, I, i
from ilang_eq.c.kernel import CKernel
from ilang_eq.export import export_model
from ilang_eq.export.model import Copy, Model, Part, Step, prepared, workspace_layout
from ilang_eq.lang.wiring import wire
from ilang_eq.lower import lower
from tests.compilers import COMPILERS
from tests.export.libraries import STRICT, load, made_up, run

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

LINEAR = i("+kj~jk") >> i("jk*ik~ijk") >> i("+ijk~ij")
"""w of (k, j), x of (i, k): a product with a transposed copy of the weights, materialised."""
RELU = i("0>ij~ij")
ROWS = (I & i(">ij~i")) >> i("ij-i~ij") >> i("^ij~ij")


def step(component: Component, reads: str, shapes: list[tuple[int, ...]], makes: str) -> Step:
    return Step(lower(wire(component)), tuple(reads.split()), tuple(shapes), tuple(makes.split()))


def layers(count: int, rows: int, width: int) -> Model:
    weights = {f"layer {n}": made_up((width, width), n) for n in range(count)}
    steps: list[Step] = []
    for n in range(count):
        steps.append(step(LINEAR, f"layer{n} v{n}", [(width, width), (rows, width)], f"h{n}"))
        steps.append(step(RELU, f"h{n}", [(rows, width)], f"v{n + 1}"))
    weights = {name.replace(" ", ""): weight for name, weight in weights.items()}
    return Model({"v0": (rows, width)}, weights, tuple(steps), ((f"v{count}", (rows, width)),))


def evaluated(model: Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    values = dict(model.weights) | dict(zip(model.inputs, inputs, strict=True))
    for each in model.steps:
        if isinstance(each, Copy):
            made = values[each.makes[0]] = np.full(each.shape, np.nan, np.float32)
            for name, part in zip(each.reads, each.parts, strict=True):
                read = strided(values[name], part.offset, part.shape, part.strides)
                strided(made, part.at, part.shape, part.steps)[...] = read
            continue
        arrays = [values[name].reshape(shape) for name, shape in zip(each.reads, each.shapes, strict=True)]
        results = CKernel(each.program, 1)(*arrays)
        values |= dict(zip(each.makes, results if isinstance(results, tuple) else (results,), strict=True))
    return [values[name].reshape(shape) for name, shape in model.outputs]


def strided(array: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    flat = np.ascontiguousarray(array).reshape(-1)[offset:]
    return np.lib.stride_tricks.as_strided(flat, shape, [4 * stride for stride in strides])


def called(directory: Path, name: str, inputs: list[np.ndarray], threads: int = 1) -> list[np.ndarray]:
    built = load(directory, name)
    weights = directory / f"{name}.weights"
    held = [np.fromfile(weights, dtype="<f4")] if weights.exists() else []
    outputs = [np.full([int(d) for d in array["dims"]], np.nan, np.float32) for array in built.manifest["outputs"]]
    workspace = np.full(built.workspace_size((), threads), 0xFF, np.uint8)
    assert built.run([*inputs, *held, *outputs], (), workspace, threads) == 0
    return outputs


def test_layers(tmp_path: Path) -> None:
    model = layers(4, rows=5, width=24)
    x = made_up((5, 24), 9)
    export_model(model, tmp_path, name="mlp")
    for threads in (1, 3):
        np.testing.assert_array_equal(called(tmp_path, "mlp", [x], threads), evaluated(model, [x]))
    assert "// in0 is v0. weights is the contents of mlp.weights" in (tmp_path / "mlp.h").read_text().replace(
        "\n// ", " "
    )
    source = (tmp_path / "mlp.c").read_text()
    assert source.count("static int p") == 2, "equal programs are written once"


def test_weights_are_packed_ahead(tmp_path: Path) -> None:
    ready = prepared(layers(2, rows=5, width=24))
    assert list(ready.weights) == ["h0.add0_all", "h1.add0_all"]
    np.testing.assert_array_equal(ready.weights["h1.add0_all"], made_up((24, 24), 1).T)
    assert isinstance(ready.steps[0], Step)
    assert len(ready.steps[0].program.kernels) == 2
    manifest = json.loads((export_model(ready, tmp_path / "out") / "model.json").read_text())
    assert [a["offset"] for a in manifest["weights"]["arrays"]] == [0, 4 * 24 * 24]
    assert (tmp_path / "out" / "model.weights").stat().st_size == manifest["weights"]["bytes"] == 2 * 4 * 24 * 24


def test_values_share_memory() -> None:
    assert workspace_layout(layers(1, 16, 16)).floats == 16 * 16
    assert workspace_layout(layers(9, 16, 16)).floats == 2 * 16 * 16


@pytest.mark.parametrize("compiler", COMPILERS)
def test_strict_builds_and_main(compiler: tuple[str, ...], tmp_path: Path) -> None:
    model = layers(3, rows=6, width=16)
    export_model(model, tmp_path, name="mlp")
    run([*compiler, *STRICT, "-O2", "-march=native", "-fopenmp-simd", "main.c", "mlp.c", "-lm", "-o", "mlp"], tmp_path)
    (want,) = evaluated(model, [made_up((6, 16), 0)])
    assert float(run(["./mlp"], tmp_path).split()[1]) == pytest.approx(want.sum(), rel=1e-4)


def test_outputs_of_all_kinds(tmp_path: Path) -> None:
    """A value that is read again, one returned twice in other shapes, an input, and a weight."""
    steps = (step(RELU, "x", [(4, 6)], "y"), step(ROWS, "y", [(3, 8)], "z"))
    outputs = (("y", (24,)), ("z", (3, 8)), ("y", (2, 12)), ("x", (4, 6)), ("w", (5,)))
    model = Model({"x": (4, 6)}, {"w": made_up((5,), 2)}, steps, outputs)
    x = made_up((4, 6), 3)
    export_model(model, tmp_path)
    for got, want in zip(called(tmp_path, "model", [x]), evaluated(model, [x]), strict=True):
        np.testing.assert_array_equal(got, want)


def part_of(name: str, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], makes: str) -> Copy:
    return Copy((name,), (Part.whole(shape, offset, strides),), shape, (makes,))


def test_parts_of_arrays(tmp_path: Path) -> None:
    """The right half, transposed; every second row; one element; the same row three times."""
    steps = (
        step(RELU, "x", [(4, 6)], "y"),
        part_of("y", 3, (3, 4), (1, 6), "right"),
        part_of("x", 6, (2, 6), (12, 1), "odd"),
        part_of("y", 23, (), (), "corner"),
        part_of("y", 0, (3, 6), (0, 1), "row"),
        step(i("ij*ij~ij"), "right odd", [(3, 4), (3, 4)], "z"),
    )
    outputs = (("z", (3, 4)), ("corner", ()), ("row", (3, 6)))
    model = Model({"x": (4, 6)}, {}, steps, outputs)
    x = np.random.default_rng(0).standard_normal((4, 6), dtype=np.float32)
    export_model(model, tmp_path)
    for got, want in zip(called(tmp_path, "model", [x]), evaluated(model, [x]), strict=True):
        np.testing.assert_array_equal(got, want)
    assert np.abs(evaluated(model, [x])[0]).max() > 0
    assert not (tmp_path / "model.weights").exists()
    run(["cc", *STRICT, "-O1", "-march=native", "-fopenmp-simd", "-c", "model.c"], tmp_path)


def test_parts_of_several_arrays(tmp_path: Path) -> None:
    """Beside each other: the right half of an input, a weight, and a value transposed."""
    steps = (
        step(RELU, "x", [(4, 6)], "y"),
        Copy(
            ("x", "w", "y"),
            (
                Part((4, 3), 3, (6, 1), 0, (8, 1)),
                Part((4, 1), 0, (1, 1), 3, (8, 1)),
                Part((4, 4), 1, (1, 6), 4, (8, 1)),
            ),
            (4, 8),
            ("z",),
        ),
    )
    model = Model({"x": (4, 6)}, {"w": made_up((4,), 2)}, steps, (("z", (4, 8)),))
    x = np.random.default_rng(0).standard_normal((4, 6), dtype=np.float32)
    export_model(model, tmp_path)
    want = np.concatenate([x[:, 3:], model.weights["w"][:, None], np.maximum(x, 0)[:, 1:5].T], 1)
    np.testing.assert_array_equal(evaluated(model, [x])[0], want)
    np.testing.assert_array_equal(called(tmp_path, "model", [x])[0], want)


def test_random_models(tmp_path: Path) -> None:
    """Chains with long and short lives; the workspace is filled with NaN before the call."""
    for seed in range(4):
        rng = random.Random(seed)
        names, steps = ["v0", "w0", "w1"], []
        for n in range(1, 9):
            shape = rng.choice([(4, 6), (6, 4), (2, 12), (24, 1)])
            component = rng.choice([RELU, ROWS, i("ij+ij~ij"), i("ij-ij~ij") >> i("ij*0.5~ij"), i("-ij~ij")])
            reads = [rng.choice(names) for _ in range(component.inputs)]
            steps.append(step(component, " ".join(reads), [shape] * component.inputs, f"v{n}"))
            names.append(f"v{n}")
        outputs = (*((name, (24,)) for name in rng.sample(names, 2)), ("v8", (4, 6)))
        weights = {"w0": made_up((4, 6), 1), "w1": made_up((24,), 2)}
        model = Model({"v0": (4, 6)}, weights, tuple(steps), outputs)
        x = made_up((4, 6), seed)
        export_model(model, tmp_path / str(seed), name=f"model{seed}")
        for got, want in zip(called(tmp_path / str(seed), f"model{seed}", [x]), evaluated(model, [x]), strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")
            assert got.size == prod(want.shape)
