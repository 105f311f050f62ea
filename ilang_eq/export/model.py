"""Several programs that feed each other, for fixed shapes, as one library with one workspace.

Weights are one array, in a file of its own, laid out as the manifest says; what programs compute from weights alone is
computed before, and is in that file in their place. Values between programs share memory where they are not alive at
the same time.

Invariants of ``Model``:
  * a step reads inputs, weights, and what earlier steps have made; every name is made once
  * arrays are row-major: a step may read an array in another shape of as many elements
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ilang_eq.c.arrays import Floats
from ilang_eq.c.emit import program_functions, source_of
from ilang_eq.c.kernel import CKernel
from ilang_eq.c.vectors import Used
from ilang_eq.export.interface import WEIGHTS, Array, Interface
from ilang_eq.export.planning import Layout, Lifetime, padded, planned
from ilang_eq.export.program import Library, numbers, renamed
from ilang_eq.export.source import WARNINGS, entry_points
from ilang_eq.lower.interface import call_extents, output_shapes
from ilang_eq.lower.ir import Program
from ilang_eq.lower.preparation import prepare
from ilang_eq.lower.walk import buffers_of

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One run of a program.

    Attributes:
        program: what to run; all its outputs are written by its kernels.
        reads: the names of its inputs.
        shapes: the shapes in which it reads them.
        makes: the names of its outputs.
        text: the component that the program is of, as 𝚒.
    """

    program: Program
    reads: tuple[str, ...]
    shapes: tuple[Shape, ...]
    makes: tuple[str, ...]
    text: str = ""

    @property
    def made(self) -> tuple[Shape, ...]:
        """The shapes of what it makes."""
        return output_shapes(self.program, self.shapes)


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of one array that become elements of another.

    Attributes:
        shape: how many there are along each dimension.
        offset: of the first one where it is read, in floats.
        strides: how many floats apart they are read along each dimension.
        at: where the first one is written, in floats.
        steps: how many floats apart they are written.
    """

    shape: Shape
    offset: int
    strides: tuple[int, ...]
    at: int
    steps: tuple[int, ...]

    @staticmethod
    def whole(shape: Shape, offset: int, strides: tuple[int, ...]) -> Part:
        """What makes all of an array."""
        return Part(shape, offset, strides, 0, row_major(shape))


def row_major(shape: Shape) -> tuple[int, ...]:
    """How many floats apart elements of an array lie along each dimension."""
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


@dataclass(frozen=True, slots=True)
class Copy:
    """Parts of arrays, their dimensions in another order perhaps, as an array of its own.

    Attributes:
        reads: the name of the array that each part is from.
        parts: what is read and where it lands; together, all of the copy.
        shape: of the copy.
        makes: the name of the copy.
    """

    reads: tuple[str, ...]
    parts: tuple[Part, ...]
    shape: Shape
    makes: tuple[str]

    @property
    def made(self) -> tuple[Shape, ...]:
        """The shape of the copy."""
        return (self.shape,)


@dataclass(frozen=True, slots=True)
class Model:
    """Programs in the order they run. ``outputs`` are what is returned: names, with the shapes to return them in."""

    inputs: Mapping[str, Shape]
    weights: Mapping[str, Floats]
    steps: tuple[Step | Copy, ...]
    outputs: tuple[tuple[str, Shape], ...]


def prepared(model: Model) -> Model:
    """``model`` with all that depends on weights alone among its weights, and without weights that nothing reads."""
    weights = dict(model.weights)
    steps: list[Step | Copy] = []
    for step in model.steps:
        if isinstance(step, Copy):
            steps.append(step)
            continue
        constants = [k for k, name in enumerate(step.reads) if name in weights]
        split = prepare(step.program, constants)
        kept: list[str] = []
        if split.first.outputs:
            arrays = [weights[step.reads[k]].reshape(step.shapes[k]) for k in split.constants]
            results = CKernel(split.first)(*arrays)
            made = results if len(split.first.outputs) > 1 else (results,)
            kept = [f"{step.makes[0]}.{name}" for name in split.first.outputs]
            weights |= dict(zip(kept, made, strict=True))
        left = (*split.varying, *split.fixed)
        loaded = {name for kernel in split.rest.kernels for name in buffers_of(kernel.body)} | set(split.rest.outputs)
        # a constant of which only the extents are needed takes no room among the weights
        unread = [k in split.fixed and name not in loaded for k, name in zip(left, split.rest.inputs, strict=False)]
        reads = (*(kept[0] if idle else step.reads[k] for k, idle in zip(left, unread, strict=True)), *kept)
        shapes = (*(step.shapes[k] for k in left), *(weights[name].shape for name in kept))
        steps.append(replace(step, program=split.rest, reads=reads, shapes=shapes))
    read = {name for step in steps for name in step.reads} | {name for name, _ in model.outputs}
    return replace(model, steps=tuple(steps), weights={name: w for name, w in weights.items() if name in read})


def weights_layout(model: Model) -> Layout:
    """Where each weight lies in the array of all."""
    offsets: dict[str, int] = {}
    end = 0
    for name, weight in model.weights.items():
        offsets[name] = end
        end += padded(weight.size)
    return Layout(offsets, end)


def workspace_layout(model: Model) -> Layout:
    """Where the values between steps lie in the workspace."""
    returned = dict(model.outputs)
    last = {name: n for n, step in enumerate(model.steps) for name in step.reads}
    values: list[Lifetime] = []
    for n, step in enumerate(model.steps):
        for name, shape in zip(step.makes, step.made, strict=True):
            if name not in returned:
                values.append(Lifetime(name, prod(shape), n, last.get(name, n)))
    return planned(values)


def model_library(model: Model, name: str, notes: Sequence[str]) -> Library:
    """The library that computes ``model``, which is prepared."""
    interface = model_interface(model, name)
    programs = {program: f"p{n}" for n, program in enumerate(dict.fromkeys(s.program for s in _runs(model)))}
    used = Used()
    functions = [
        function
        for program, prefix in programs.items()
        for function in program_functions(renamed(program, prefix), used, prefix, "static ")
    ]
    public = entry_points(interface, _sizing(model, programs), _running(model, programs))
    needed = [text for call, text in _HELPERS.items() if any(call in function for function in public)]
    return Library(interface, source_of("\n".join([WARNINGS, *needed]), (*functions, *public), used), tuple(notes))


_HELPERS = {
    "memcpy(": "#include <string.h>",
    "copy_strided(": """\
#include <stdint.h>

// Elements that lie ``strides`` floats apart to where they lie ``steps`` floats apart.
static void copy_strided(float *to, const int64_t *steps, const float *from, const int64_t *strides, int rank,
                         const int64_t *shape)
{
    if (rank == 0)
        *to = *from;
    else if (rank == 1)
        for (int64_t n = 0; n < shape[0]; n++)
            to[n * steps[0]] = from[n * strides[0]];
    else
        for (int64_t n = 0; n < shape[0]; n++)
            copy_strided(to + n * steps[0], steps + 1, from + n * strides[0], strides + 1, rank - 1, shape + 1);
}
""",
}
"""What the public functions may call, by a call of it."""


def _runs(model: Model) -> list[Step]:
    return [step for step in model.steps if isinstance(step, Step)]


def parameters(model: Model, name: str) -> list[str]:
    """What each parameter of the library is, a line each."""
    lines = [f"in{k} is {given}." for k, given in enumerate(model.inputs)]
    lines += [f"{WEIGHTS} is the contents of {name}.weights, little-endian float32."] if model.weights else []
    return lines + [f"out{k} is {made}." for k, (made, _) in enumerate(model.outputs)]


def described(model: Model) -> dict[str, object]:
    """What the manifest says of ``model`` beside its interface."""
    layout = weights_layout(model)
    return {
        "input_names": list(model.inputs),
        "output_names": [name for name, _ in model.outputs],
        "weights": {
            "dtype": "little-endian float32",
            "bytes": 4 * layout.floats,
            "arrays": [
                {"name": name, "offset": 4 * layout.offsets[name], "shape": list(weight.shape)}
                for name, weight in model.weights.items()
            ],
        },
        "steps": [
            {"makes": list(step.makes), "reads": list(step.reads), "component": step.text}
            if isinstance(step, Step)
            else {"makes": list(step.makes), "reads": list(step.reads), "copy": "strided"}
            for step in model.steps
        ],
    }


def weights_bytes(model: Model) -> bytes:
    """The contents of the file of weights."""
    layout = weights_layout(model)
    floats = np.zeros(layout.floats, dtype="<f4")
    for name, weight in model.weights.items():
        floats[layout.offsets[name] : layout.offsets[name] + weight.size] = weight.ravel()
    return floats.tobytes()


def model_interface(model: Model, name: str) -> Interface:
    """Inputs, the weights if there are any, and outputs."""
    inputs = [Array(f"in{k}", tuple(map(str, shape))) for k, shape in enumerate(model.inputs.values())]
    weights = [Array(WEIGHTS, (str(weights_layout(model).floats),))] if model.weights else []
    outputs = [Array(f"out{k}", tuple(map(str, shape))) for k, (_, shape) in enumerate(model.outputs)]
    return Interface(name, (*inputs, *weights), tuple(outputs), ())


def _sizing(model: Model, programs: Mapping[Program, str]) -> list[str]:
    """The workspace of the hungriest step comes after the values."""
    calls = dict.fromkeys(f"{programs[s.program]}_workspace({_extents(s)}, threads)" for s in _runs(model))
    lines = ["int64_t most = 0, step;"]
    for call in calls:
        lines += [f"step = {call};", "most = step < 0 || most < 0 ? -1 : step > most ? step : most;"]
    values = workspace_layout(model).floats
    return [*lines, f"const int64_t floats = most < 0 || most > INT64_MAX - {values} ? -1 : most + {values};"]


def _running(model: Model, programs: Mapping[Program, str]) -> list[str]:
    layout = workspace_layout(model)
    where = _places(model, layout)
    lines = ["float *const values = workspace;", f"float *const scratch = values + {layout.floats};"]
    for step in model.steps:
        inputs = ", ".join(where[name] for name in step.reads)
        outputs = ", ".join(where[name] for name in step.makes)
        lines += [f"// {', '.join(step.makes)}"]
        if isinstance(step, Copy):
            lines += [
                f"copy_strided({outputs} + {part.at}, {numbers(part.steps)}, {where[name]} + {part.offset}, "
                f"{numbers(part.strides)}, {len(part.shape)}, {numbers(part.shape)});"
                for name, part in zip(step.reads, step.parts, strict=True)
            ]
            continue
        lines += [
            f"{programs[step.program]}_run((const float *const[]){{{inputs}}}, (float *const[]){{{outputs}}},",
            f"       {_extents(step)}, scratch, threads);",
        ]
    for k, (name, shape) in enumerate(model.outputs):
        if where[name] != f"out{k}":
            lines += [f"memcpy(out{k}, {where[name]}, {prod(shape)} * sizeof(float));"]
    return [*lines, "return 0;"]


def _places(model: Model, layout: Layout) -> dict[str, str]:
    """Where each value lies, in C. What is returned is made in the caller's memory; twice, it is copied."""
    weights = weights_layout(model).offsets
    made = {name for step in model.steps for name in step.makes}
    places = {name: f"values + {offset}" for name, offset in layout.offsets.items()}
    places |= {name: f"in{k}" for k, name in enumerate(model.inputs)}
    places |= {name: f"weights + {offset}" for name, offset in weights.items()}
    return places | {name: f"out{k}" for k, (name, _) in reversed(list(enumerate(model.outputs))) if name in made}


def _extents(step: Step) -> str:
    return numbers([step.shapes[extent.input][extent.dim] for extent in call_extents(step.program)])
