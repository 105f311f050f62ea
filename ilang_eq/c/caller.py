"""The quick way into a kernel: a built-in function that takes arrays and checks them in C.

``ctypes`` takes a microsecond for each argument that it converts, which is longer than a small kernel runs. So a few
lines of C are built like a kernel, once, and made a Python function. They use what the stable ABI of Python 3.11 lays
down (https://docs.python.org/3/c-api/stable.html) and declare it themselves, so that no headers need be installed.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ilang_eq.c.build import build
from ilang_eq.errors import BuildError
from ilang_eq.lower.interface import Shapes

Enter: TypeAlias = Callable[[tuple[object, ...], object, int, int, int], int]
"""``enter(arrays, results, call, workspace, threads)``: ``call`` is the address of a ``Call``, ``workspace`` one or 0.

Returns the kernel's code, or -1, having run nothing, unless ``arrays`` and ``results`` are tuples of plain NumPy arrays
of the shapes of ``call``, contiguous, aligned float32, ``results`` writable and apart from each other and ``arrays``.
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
    library.use((ctypes.c_void_p * len(addresses))(*addresses))
    method = _Method(b"enter", ctypes.cast(library.enter, ctypes.c_void_p), _METH_FASTCALL, None)
    _KEPT.append((library, method))
    return make(ctypes.addressof(method), None, None)


_KEPT: list[object] = []
"""What the built-in function points to."""

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

void use(const struct python *given) { python = *given; }

struct call {
    PyObject *type;  // of the arrays that are taken
    int (*run)(const float *const *, float *const *, const int64_t *, float *, int);
    const int64_t *extents;
    int64_t inputs, outputs;
    const int64_t *shapes;  // of inputs, then outputs: the rank, then as many extents
};

// A view of ``array``; 0 if it is a plain array of float32 of the given shape.
static int view_of(PyObject *array, Py_buffer *view, const struct call *call, const int64_t *shape, int flags)
{
    PyObject *type = python.PyObject_Type(array);
    python.Py_DecRef(type);
    if (type != call->type || python.PyObject_GetBuffer(array, view, flags | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0)
        return 1;
    int other = strcmp(view->format, "f") != 0 || (uintptr_t)view->buf % sizeof(float) != 0 || view->ndim != shape[0];
    for (int d = 0; !other && d < view->ndim; d++)
        other = view->shape[d] != shape[1 + d];
    if (other)
        python.PyBuffer_Release(view);
    return other;
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

static int run(PyObject *arrays, PyObject *results, const struct call *call, float *workspace, int threads)
{
    const int64_t inputs = call->inputs, count = inputs + call->outputs;
    if (python.PyTuple_Size(arrays) != inputs || python.PyTuple_Size(results) != call->outputs)
        return -1;
    Py_buffer views[count + 1];
    const float *read[inputs + 1];
    float *written[call->outputs + 1];
    const int64_t *shape = call->shapes;
    int64_t taken = 0;
    int code = -1;
    for (int64_t k = 0; k < inputs; k++, taken++, shape += 1 + shape[0]) {
        if (view_of(python.PyTuple_GetItem(arrays, k), &views[taken], call, shape, 0) != 0)
            goto release;
        read[k] = views[taken].buf;
    }
    for (int64_t k = 0; k < call->outputs; k++, shape += 1 + shape[0]) {
        if (view_of(python.PyTuple_GetItem(results, k), &views[taken], call, shape, PyBUF_WRITABLE) != 0)
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
        python.PyBuffer_Release(&views[--taken]);
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
