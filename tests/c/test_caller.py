"""The quick way into kernels: which arrays it takes, read by fields or as buffers, and how calls share the threads."""

from __future__ import annotations

import array
import ctypes
import pickle
import platform
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ilang_eq.c import caller
from ilang_eq.c.build import build
from ilang_eq.c.caller import NOT_QUICK, call_of, fields_found, quick_entry
from ilang_eq.c.kernel import CKernel
from ilang_eq.errors import ArrayError
from ilang_eq.lower.interface import Shapes
from tests.c import programs

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

Addresses = ctypes.POINTER(ctypes.c_void_p)
Run = ctypes.CFUNCTYPE(ctypes.c_int, Addresses, Addresses, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
GetBuffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)

FIELDS_EXPECTED = platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


class Kernel:
    """Notes the addresses and threads that it is given, and does nothing."""

    def __init__(self, inputs: Shapes, outputs: Shapes) -> None:
        self.given: list[int | None] = []
        self.threads: list[int] = []
        self.function = Run(self.run)
        self.call = call_of(self.function, (), inputs, outputs)

    def run(self, read: Any, written: Any, extents: int, workspace: int, threads: int) -> int:
        self.given = [*read[: self.call.inputs], *written[: self.call.outputs]]
        self.threads.append(threads)
        return 0

    def enter(self, arrays: Any, out: Any, threads: int = 1) -> int:
        return quick_entry()(arrays, out, ctypes.addressof(self.call), 0, threads)

    def takes(self, arrays: Any, out: Any) -> bool:
        """Whether it is entered; if so, with the arrays' own memory."""
        self.given, self.threads = [], []
        if self.enter(arrays, out) == NOT_QUICK:
            assert not self.threads, "refused, but run"
            return False
        outs = out if isinstance(out, tuple) else (out,)
        assert self.given == [each.ctypes.data for each in (*arrays, *outs)]
        return True


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


@pytest.fixture(autouse=True, scope="module")
def quick_way() -> None:
    if not Kernel((), ((2,),)).takes((), zeros(2)):
        assert platform.python_implementation() != "CPython", "the quick way in is lost"
        pytest.skip("this interpreter has no quick way in")


@pytest.fixture(params=["fields", "buffers"])
def asked(request: pytest.FixtureRequest) -> Iterator[list[object]]:
    """Whose buffers are asked for, where fields are read and where they are not found."""
    if request.param == "fields" and not FIELDS_EXPECTED:
        pytest.skip("fields may be elsewhere")
    objects: list[object] = []
    get = GetBuffer(("PyObject_GetBuffer", ctypes.pythonapi))

    def noted(asked_of: object, view: int, flags: int) -> int:
        objects.append(asked_of)
        try:
            return get(asked_of, view, flags)
        except (BufferError, ValueError):
            return -1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ctypes.pythonapi, "PyObject_GetBuffer", GetBuffer(noted))
        if request.param == "buffers":
            patch.setattr(caller, "fields_found", lambda _: False)
        quick_entry.cache_clear()
        quick_entry()
        yield objects
    quick_entry.cache_clear()
    quick_entry()


def read_only() -> np.ndarray:
    frozen = zeros(2, 3)
    frozen.flags.writeable = False
    return frozen


class Subclass(np.ndarray):
    pass


TAKEN: dict[str, Callable[[], Any]] = {
    "fresh": lambda: zeros(2, 3),
    "rows of a larger one": lambda: zeros(9, 3)[4:6],
    "columns as rows": lambda: np.zeros((3, 2), np.float32, order="F").T,
    "within bytes": lambda: np.frombuffer(bytearray(32), np.float32, offset=4)[:6].reshape(2, 3),
}
DESCRIBED: dict[str, Callable[[], Any]] = {
    "unpickled": lambda: pickle.loads(pickle.dumps(zeros(2, 3))),
    "with metadata": lambda: np.zeros((2, 3), np.dtype("f4", metadata={"of": "a file"})),
}
"""Float32 that has a descriptor of its own."""
REFUSED: dict[str, Callable[[], Any]] = {
    "float64": lambda: np.zeros((2, 3)),
    "int32": lambda: np.zeros((2, 3), np.int32),
    "other byte order": lambda: zeros(2, 3).astype(np.dtype("f4").newbyteorder()),
    "every other column": lambda: zeros(2, 6)[:, ::2],
    "columns first": lambda: zeros(3, 2).T,
    "backwards": lambda: zeros(2, 3)[::-1],
    "one row twice": lambda: np.broadcast_to(zeros(3), (2, 3)),
    "within a float": lambda: np.ndarray((2, 3), np.float32, buffer=bytearray(32), offset=1),
    "subclass": lambda: zeros(2, 3).view(Subclass),
    "masked": lambda: np.ma.masked_equal(zeros(2, 3), 1),
    "fewer dimensions": lambda: zeros(6),
    "more dimensions": lambda: zeros(1, 2, 3),
    "no dimension": lambda: zeros(),
    "other extents": lambda: zeros(3, 2),
    "fewer rows": lambda: zeros(1, 3),
    "no rows": lambda: zeros(0, 3),
    "number": lambda: 0.0,
    "NumPy's number": lambda: np.float32(0),
    "list": lambda: [[0.0] * 3] * 2,
    "buffer of another type": lambda: array.array("f", [0.0] * 6),
    "view of memory": lambda: zeros(2, 3).data,
    "type": lambda: np.ndarray,
    "None": lambda: None,
}


@pytest.mark.parametrize("name", [*TAKEN, *DESCRIBED, *REFUSED])
def test_what_is_taken(name: str, asked: list[object]) -> None:
    make = (TAKEN | DESCRIBED | REFUSED)[name]
    kernel, plain, subject = Kernel(((2, 3), (2, 3)), ((2, 3),)), zeros(2, 3), make()
    takes = name not in REFUSED
    assert kernel.takes((plain, subject), zeros(2, 3)) == takes
    assert kernel.takes((subject, plain), zeros(2, 3)) == takes
    assert kernel.takes((plain, plain), subject) == takes


@pytest.mark.parametrize("name", [*TAKEN, *DESCRIBED, "float64", "subclass", "columns first"])
def test_nothing_is_kept(name: str, asked: list[object]) -> None:
    make = (TAKEN | DESCRIBED | REFUSED)[name]
    kernel, plain, subject = Kernel(((2, 3), (2, 3)), ((2, 3),)), zeros(2, 3), make()
    references = sys.getrefcount(plain), sys.getrefcount(subject)
    kernel.enter((plain, subject), zeros(2, 3))
    kernel.enter((plain, plain), subject)
    asked.clear()
    assert (sys.getrefcount(plain), sys.getrefcount(subject)) == references


@pytest.mark.parametrize("asked", ["fields"], indirect=True)
def test_no_buffer_of_plain_arrays_is_asked_for(asked: list[object]) -> None:
    kernel, plain = Kernel(((2, 3),), ((2, 3),)), zeros(2, 3)
    for make in TAKEN.values():
        assert kernel.takes((make(),), plain)
        assert kernel.takes((plain,), make())
    assert kernel.takes((read_only(),), plain)
    assert not asked
    for make in DESCRIBED.values():
        subject = make()
        assert kernel.takes((subject,), plain)
        assert asked.pop() is subject
        assert not asked


@pytest.mark.parametrize("asked", ["buffers"], indirect=True)
def test_buffers_are_asked_for_where_fields_are_not_found(asked: list[object]) -> None:
    x, y = zeros(2, 3), zeros(2, 3)
    assert Kernel(((2, 3),), ((2, 3),)).takes((x,), y)
    assert [id(each) for each in asked] == [id(x), id(y)]


def test_only_what_is_written_must_be_writable(asked: list[object]) -> None:
    kernel, plain, frozen = Kernel(((2, 3),), ((2, 3),)), zeros(2, 3), read_only()
    assert kernel.takes((frozen,), plain)
    assert not kernel.takes((plain,), frozen)


@pytest.mark.filterwarnings("ignore:Numpy has detected:DeprecationWarning")
def test_a_warning_of_writing_is_numpys(asked: list[object]) -> None:
    out = np.broadcast_arrays(zeros(2, 3), zeros(1, 2, 3))[0]
    kernel = Kernel((), (out.shape,))
    assert kernel.takes((), out)
    assert [id(each) for each in asked] == [id(out)]


@pytest.mark.parametrize(
    "subject",
    [zeros(), zeros(0), zeros(4, 0, 3), zeros(1, 1), zeros(6, 3)[::4][:1], zeros(*[1] * 32)],
    ids=lambda each: str(each.shape),
)
def test_shapes_of_all_kinds(subject: np.ndarray, asked: list[object]) -> None:
    assert Kernel((subject.shape,), (subject.shape,)).takes((subject,), zeros(*subject.shape))
    longer = (*subject.shape, 2)
    assert not Kernel((longer,), ((),)).takes((subject,), zeros())
    assert not Kernel(((),), (longer,)).takes((zeros(),), subject)


def test_outputs_lie_apart(asked: list[object]) -> None:
    memory = zeros(40)
    one, two = Kernel(((8,),), ((8,),)), Kernel(((8,), (8,)), ((8,), (8,)))
    for first in range(17):
        apart = abs(first - 8) >= 8
        assert one.takes((memory[8:16],), memory[first : first + 8]) == apart, first
        assert two.takes((memory[32:], memory[32:]), (memory[8:16], memory[first : first + 8])) == apart, first
        assert two.takes((memory[32:], memory[8:16]), (memory[24:32], memory[first : first + 8])) == apart, first


def test_one_output_is_an_array_and_several_a_tuple(asked: list[object]) -> None:
    one, two = Kernel(((2,),), ((2,),)), Kernel(((2,),), ((2,), (3,)))
    x, y, z = zeros(2), zeros(2), zeros(3)
    assert one.takes((x,), y)
    assert two.takes((x,), (y, z))
    for kernel in (one, two):
        for out in ((), (y,), [y, z], (z, y), (y, z, z), (y, None), z, None):
            assert kernel.enter((x,), out) == NOT_QUICK
        for arrays in ((), (x, x), [x], x, None):
            assert kernel.enter(arrays, y if kernel is one else (y, z)) == NOT_QUICK


def test_results_and_refusals_are_the_same(asked: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = CKernel(programs.matmul(4, 8), threads=1)
    x, y = np.random.default_rng(0).standard_normal((2, 5, 5), np.float32)
    want, out = kernel(x, y), zeros(5, 5)
    for refused in (zeros(5, 6), np.zeros((5, 5)), zeros(5, 5).T, read_only(), x):
        with pytest.raises(ArrayError, match="out "):
            kernel(x, y, out=refused)
    monkeypatch.setattr(kernel, "carefully", lambda *_: pytest.fail("took the long way"))
    assert kernel(x, y, out=out) is out
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(kernel(x, pickle.loads(pickle.dumps(y))), want)


MIDDLE = "{};\n    int rank;\n    ptrdiff_t *extents, *strides;\n    {} "
MISPLACED = {
    "a longer header, as without the GIL": ("ptrdiff_t references;", "ptrdiff_t references[3];"),
    "a shorter header": ("ptrdiff_t references;\n", "\n"),
    "data": (MIDDLE.format("char *data", "PyObject *base,"), MIDDLE.format("PyObject *base", "char *data; PyObject")),
    "rank": ("    int rank;", "    int before, rank;"),
    "extents": ("*extents, *strides", "*strides, *extents"),
    "descriptor": ("*base, *descriptor", "*descriptor, *base"),
    "flags": ("    int flags;", "    int before, flags;"),
    "contiguous": ("C_CONTIGUOUS = 0x1,", "C_CONTIGUOUS = 0x2,"),
    "writable": ("WRITEABLE = 0x400,", "WRITEABLE = 0x100,"),
    "more than there is": ("    int flags;", "    int flags;\n    char more[4096];"),
}


@pytest.mark.skipif(not FIELDS_EXPECTED, reason="fields may be elsewhere")
def test_fields_are_found() -> None:
    assert fields_found(ctypes.PyDLL(str(build(caller.SOURCE))))


@pytest.mark.parametrize("name", MISPLACED)
def test_fields_are_not_found_elsewhere(name: str) -> None:
    here, elsewhere = MISPLACED[name]
    assert caller.SOURCE.count(here) == 1
    library = ctypes.PyDLL(str(build(caller.SOURCE.replace(here, elsewhere))))
    assert not fields_found(library)


def threads_seen(depth: int, most: int) -> list[int]:
    """How many threads a call is given, and one made while it runs, and so on."""

    class Nested(Kernel):
        def run(self, read: Any, written: Any, extents: int, workspace: int, threads: int) -> int:
            super().run(read, written, extents, workspace, threads)
            return self.enter((), zeros(2), most) if len(self.threads) < depth else 0

    kernel = Nested((), ((2,),))
    assert kernel.enter((), zeros(2), most) == 0
    return kernel.threads


def test_calls_under_way_share_the_threads() -> None:
    assert threads_seen(5, 8) == [8, 4, 2, 2, 1]
    assert threads_seen(3, 1) == [1, 1, 1]
    assert threads_seen(1, 8) == [8], "those that are over do not count"
