"""The quick way into a kernel: a built-in function that takes arrays and checks them in C.

``ctypes`` takes a microsecond for each argument that it converts, which is longer than a small kernel runs. So a few
lines of C are built like a kernel, once, and made a Python function. They use what the stable ABI of Python 3.11 lays
down (https://docs.python.org/3/c-api/stable.html) and declare it themselves, so that no headers need be installed.

NumPy takes 40 ns to describe an array as a buffer. All that matters of one is in a few fields, which have the same
places in NumPy 1.x and 2.x, as its headers compile them into every extension; only how Python was built moves them. So
they are read in place, where a few arrays of which all is known have shown once that they are there. Buffers are asked
for elsewhere, and of what the fields do not settle.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ilang_eq.c.build import build
from ilang_eq.c.memory import FLOAT32
from ilang_eq.errors import BuildError
from ilang_eq.lower.interface import Shapes

Enter: TypeAlias = Callable[[tuple[object, ...], object, int, int, int], int]
"""``enter(arrays, out, call, workspace, threads)``: ``call`` is the address of a ``Call``, ``workspace`` one or 0.

Returns the kernel's code, or -1, having run nothing, unless ``arrays`` is a tuple, and ``out`` too if there are several
outputs, else one array, and all are plain NumPy arrays of the shapes of ``call``, contiguous, aligned float32, those of
``out`` writable and apart from each other and ``arrays``.
"""

NOT_QUICK = -1
_METH_FASTCALL = 0x80


class Call(ctypes.Structure):
    """``struct call`` of the source below."""

    _fields_ = (
        ("type", ctypes.py_object),
        ("run", ctypes.c_void_p),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("shapes", ctypes.POINTER(ctypes.c_int64)),
    )


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def call_of(run: Any, extents: Sequence[int], inputs: Shapes, outputs: Shapes) -> Call:
    """What ``enter`` needs to know of a kernel, whose C function is ``run``, at given shapes."""
    shapes = [n for shape in (*inputs, *outputs) for n in (len(shape), *shape)]
    address = ctypes.cast(run, ctypes.c_void_p)
    return Call(np.ndarray, address, _numbers(extents), len(inputs), len(outputs), _numbers(shapes))


def _numbers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


@functools.lru_cache(maxsize=1)
def quick_entry() -> Enter:
    """The function; one that takes nothing where the interpreter does not have what it needs."""
    try:
        library = ctypes.PyDLL(str(build(SOURCE)))
        make = ctypes.pythonapi.PyCFunction_NewEx
        used = re.findall(r"\(\*(Py\w+)\)", SOURCE)
        addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in used]
    except (OSError, AttributeError, BuildError):
        return lambda *_: NOT_QUICK
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.use.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_int]
    library.use((ctypes.c_void_p * len(addresses))(*addresses), FLOAT32, fields_found(library))
    method = _Method(b"enter", ctypes.cast(library.enter, ctypes.c_void_p), _METH_FASTCALL, None)
    _KEPT.append((library, method))
    return make(ctypes.addressof(method), None, None)


_KEPT: list[object] = []
"""What the built-in function points to."""


def fields_found(library: Any) -> bool:
    """Whether arrays have in their fields, where the library's source says they are, what NumPy says of them."""
    find, number, extent = library.find, ctypes.c_int, ctypes.c_ssize_t
    find.argtypes = [ctypes.py_object, extent, *[ctypes.py_object] * 2, *[ctypes.c_void_p] * 2, *[number] * 3]
    for array in _of_many_kinds():
        extents = (extent * array.ndim)(*array.shape)
        flags = array.flags.c_contiguous, array.flags.writeable
        known = np.ndarray.__basicsize__, np.ndarray, array.dtype, array.ctypes.data, extents, array.ndim, *flags
        if not find(array, *known):
            return False
    return True


def _of_many_kinds() -> Iterator[NDArray[Any]]:
    """Arrays so different that what is read in a wrong place is wrong for one of them."""
    cube = np.zeros((2, 3, 5), np.float32)
    frozen = cube.view()
    frozen.flags.writeable = False
    yield from (cube, frozen, cube.T, frozen.T, cube[1], cube[:, 1:, ::-2], frozen[1, 2], cube[1, 2, 3:4])
    yield from (np.zeros((), np.float32), np.zeros((4, 0), np.float32), np.broadcast_to(cube, (7, 2, 3, 5)))
    yield from (np.zeros(6, ">f4"), np.zeros((1, 2, 1, 3)), np.zeros((3, 1), np.int32), np.zeros(2, "f4,i8"))


SOURCE = """\
// The quick way into kernels: arrays are checked here, and anything unusual is left to Python.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// From Python's stable ABI, 3.11.
typedef struct _object PyObject;
typedef struct {
    void *buf;
    PyObject *obj;
    ptrdiff_t len, itemsize;
    int readonly, ndim;
    char *format;
    ptrdiff_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;
enum { PyBUF_WRITABLE = 0x1, PyBUF_FORMAT = 0x4, PyBUF_C_CONTIGUOUS = 0x38 };

// Its functions, which the linker need not find.
static struct python {
    int (*PyObject_GetBuffer)(PyObject *object, Py_buffer *view, int flags);
    void (*PyBuffer_Release)(Py_buffer *view);
    PyObject *(*PyObject_Type)(PyObject *object);
    void (*Py_DecRef)(PyObject *object);
    ptrdiff_t (*PyTuple_Size)(PyObject *tuple);
    PyObject *(*PyTuple_GetItem)(PyObject *tuple, ptrdiff_t position);
    PyObject *(*PyLong_FromLong)(long value);
    long (*PyLong_AsLong)(PyObject *value);
    void *(*PyLong_AsVoidPtr)(PyObject *value);
    void (*PyErr_Clear)(void);
    void *(*PyEval_SaveThread)(void);
    void (*PyEval_RestoreThread)(void *state);
} python;

struct call {
    PyObject *type;  // of the arrays that are taken
    int (*run)(const float *const *, float *const *, const int64_t *, float *, int);
    const int64_t *extents;
    int64_t inputs, outputs;
    const int64_t *shapes;  // of inputs, then outputs: the rank, then as many extents
};

// How an array begins, by NumPy's public headers.
struct array {
    ptrdiff_t references;
    PyObject *type;
    char *data;
    int rank;
    ptrdiff_t *extents, *strides;
    PyObject *base, *descriptor;
    int flags;
};
enum { C_CONTIGUOUS = 0x1, WRITEABLE = 0x400, WARN_ON_WRITE = INT32_MIN };

// Whether an array, of so many bytes, has all this in its fields. A pointer found there is followed last.
int find(const struct array *array, ptrdiff_t bytes, PyObject *type, PyObject *descriptor, const char *data,
         const ptrdiff_t *extents, int rank, int contiguous, int writeable)
{
    if (bytes < (ptrdiff_t)sizeof *array || array->type != type || array->descriptor != descriptor ||
        array->data != data || array->rank != rank || !(array->flags & C_CONTIGUOUS) != !contiguous ||
        !(array->flags & WRITEABLE) != !writeable)
        return 0;
    for (int d = 0; d < rank; d++)
        if (array->extents[d] != extents[d])
            return 0;
    return 1;
}

// The descriptor of nearly all arrays of float32: unpickled ones have their own. Null if arrays do not begin like that.
static PyObject *float32;

void use(const struct python *given, PyObject *descriptor, int found)
{
    python = *given;
    float32 = found ? descriptor : NULL;
}

// Views what can be seen to be a plain array of float32 of the given shape, and to be written without a warning.
static int viewed_by_fields(PyObject *object, Py_buffer *view, PyObject *type, const int64_t *shape, int written)
{
    const struct array *array = (const struct array *)object;
    if (float32 == NULL || array->type != type || array->descriptor != float32 || array->rank != shape[0])
        return 0;
    const int missing = ~array->flags & (written ? C_CONTIGUOUS | WRITEABLE : C_CONTIGUOUS);
    if (missing || (written && array->flags & WARN_ON_WRITE) || (uintptr_t)array->data % sizeof(float) != 0)
        return 0;
    ptrdiff_t bytes = sizeof(float);
    for (int d = 0; d < array->rank; d++) {
        if (array->extents[d] != shape[1 + d])
            return 0;
        bytes *= array->extents[d];
    }
    view->buf = array->data, view->len = bytes, view->obj = NULL;
    return 1;
}

// The same of any plain array of float32, which NumPy describes.
static int viewed_by_buffer(PyObject *object, Py_buffer *view, PyObject *type, const int64_t *shape, int written)
{
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (written ? PyBUF_WRITABLE : 0);
    PyObject *found = python.PyObject_Type(object);
    python.Py_DecRef(found);
    if (found != type || python.PyObject_GetBuffer(object, view, flags) != 0)
        return 0;
    int same = strcmp(view->format, "f") == 0 && (uintptr_t)view->buf % sizeof(float) == 0 && view->ndim == shape[0];
    for (int d = 0; same && d < view->ndim; d++)
        same = view->shape[d] == shape[1 + d];
    if (!same)
        python.PyBuffer_Release(view);
    return same;
}

static int viewed(PyObject *object, Py_buffer *view, PyObject *type, const int64_t *shape, int written)
{
    return viewed_by_fields(object, view, type, shape, written) || viewed_by_buffer(object, view, type, shape, written);
}

static int overlapping(const Py_buffer *views, int64_t count)
{
    const char *first = views[count].buf, *last = first + views[count].len;
    for (int64_t k = 0; k < count; k++)
        if (first < (char *)views[k].buf + views[k].len && (char *)views[k].buf < last)
            return 1;
    return 0;
}

// The calls under way, from all threads. They share the cores: results do not depend on how many threads a call has.
static int under_way;

static int share_of(int threads, int others) { return threads > others ? threads / (others + 1) : 1; }

static int run(PyObject *arrays, PyObject *out, const struct call *call, float *workspace, int threads)
{
    const int64_t inputs = call->inputs, outputs = call->outputs;
    if (python.PyTuple_Size(arrays) != inputs || (outputs != 1 && python.PyTuple_Size(out) != outputs))
        return -1;
    Py_buffer views[inputs + outputs + 1];
    const float *read[inputs + 1];
    float *written[outputs + 1];
    const int64_t *shape = call->shapes;
    int64_t taken = 0;
    int code = -1;
    for (int64_t k = 0; k < inputs; k++, shape += 1 + shape[0]) {
        if (!viewed(python.PyTuple_GetItem(arrays, k), &views[taken], call->type, shape, 0))
            goto release;
        read[k] = views[taken++].buf;
    }
    for (int64_t k = 0; k < outputs; k++, shape += 1 + shape[0]) {
        PyObject *const result = outputs == 1 ? out : python.PyTuple_GetItem(out, k);
        if (!viewed(result, &views[taken], call->type, shape, 1))
            goto release;
        written[k] = views[taken++].buf;
        if (overlapping(views, taken - 1))
            goto release;
    }
    void *state = python.PyEval_SaveThread();
    const int others = __atomic_fetch_add(&under_way, 1, __ATOMIC_RELAXED);
    code = call->run(read, written, call->extents, workspace, share_of(threads, others));
    __atomic_fetch_sub(&under_way, 1, __ATOMIC_RELAXED);
    python.PyEval_RestoreThread(state);
release:
    while (taken > 0)
        if (views[--taken].obj != NULL)
            python.PyBuffer_Release(&views[taken]);
    return code;
}

PyObject *enter(PyObject *self, PyObject *const *arguments, ptrdiff_t count)
{
    (void)self, (void)count;
    const struct call *call = python.PyLong_AsVoidPtr(arguments[2]);
    float *workspace = python.PyLong_AsVoidPtr(arguments[3]);
    int code = run(arguments[0], arguments[1], call, workspace, (int)python.PyLong_AsLong(arguments[4]));
    if (code < 0)
        python.PyErr_Clear();
    return python.PyLong_FromLong(code);
}
"""
