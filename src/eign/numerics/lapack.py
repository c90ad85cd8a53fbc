"""LAPACK and BLAS in place and without the interpreter's lock, so that threads factor matrices side by side.

SciPy's own wrappers hold the lock while they run: two threads that call them take turns. Its Cython interface has the
bare functions, and `ctypes` gives up the lock when it calls one. Matrices have contiguous columns (Fortran order, or a
block of such a matrix), and only one triangle is read and written where they are triangular: the lower one. They are
float64; `rows_times` also takes float32.
Small ones go by SciPy's wrappers, whose calls take two microseconds less: there threads do not pay.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack, lapack

from eign.arrays import Array

Floats = NDArray[np.floating[Any]]

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _bare(module: Any, name: str) -> tuple[Callable[..., None], type[Any]]:
    """A function that takes addresses, and the integers it works with."""
    capsule = module.__pyx_capi__[name]
    signature: bytes = _name(capsule)
    # All arguments are pointers.
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (signature.count(b",") + 1))
    return kind(_pointer(capsule, signature)), ctypes.c_int if b" int *" in signature else ctypes.c_int64


_dpotrf, _Int = _bare(cython_lapack, "dpotrf")
_dlauum, _ = _bare(cython_lapack, "dlauum")
_dtrtri, _ = _bare(cython_lapack, "dtrtri")
_dtrmm, _ = _bare(cython_blas, "dtrmm")
_strmm, _ = _bare(cython_blas, "strmm")

_DOUBLE: Final = np.dtype(np.float64)
_SMALL: Final = 100
_constants: Final[list[Any]] = []


def _address_of(constant: Any) -> int:
    """Of a number or letter that LAPACK reads, and that is kept for good."""
    _constants.append(constant)
    return ctypes.addressof(constant)


_LOWER, _UPPER, _LEFT, _RIGHT, _NO, _YES = (_address_of(ctypes.c_char(bytes([letter]))) for letter in b"LULRNT")
_ONE, _MINUS_ONE = (_address_of(ctypes.c_double(number)) for number in (1.0, -1.0))
_SINGLE_ONE: Final = _address_of(ctypes.c_float(1.0))
_UNREAD: Final = _address_of(_Int())


def cholesky_in_place(matrix: Array) -> int:
    """Overwrite the lower triangle of a symmetric matrix by its Cholesky factor; 0, or the row at which it failed."""
    if _is_small(matrix):
        return int(lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)[1])
    info = _Int()
    _dpotrf(_LOWER, _size(len(matrix)), *_columns(matrix), ctypes.addressof(info))
    return int(info.value)


def gram_in_place(lower: Array) -> None:
    """Overwrite a lower triangle A by that of A'A."""
    if _is_small(lower):
        lapack.dlauum(lower, lower=1, overwrite_c=1)
        return
    _dlauum(_LOWER, _size(len(lower)), *_columns(lower), _UNREAD)


def invert_in_place(lower: Array) -> None:
    """Overwrite a lower triangle by its inverse."""
    if _is_small(lower):
        lapack.dtrtri(lower, lower=1, overwrite_c=1)
        return
    _dtrtri(_LOWER, _NO, _size(len(lower)), *_columns(lower), _UNREAD)


def multiply_in_place(lower: Array, other: Array, *, right: bool = False, negative: bool = False) -> None:
    """Overwrite a matrix B by A B, or by B A on the right, with A lower triangular; or by the negative of it."""
    side, alpha = _RIGHT if right else _LEFT, _MINUS_ONE if negative else _ONE
    rows, columns = map(_size, other.shape)
    _dtrmm(side, _LOWER, _NO, _NO, rows, columns, alpha, *_columns(lower), *_columns(other))


def rows_times(rows: Floats, lower: Floats, *, transposed: bool = False) -> None:
    """Overwrite rows R, `m x n`, by R A, or by R A', with A lower triangular; both in C order and of one precision.

    Half the work of the full product. In Fortran order it is the product of A', upper triangular, with the columns R'.
    """
    flip, columns, kind = _YES if transposed else _NO, rows.T, lower.dtype
    sizes = map(_size, columns.shape)
    multiply, one = (_strmm, _SINGLE_ONE) if kind == np.float32 else (_dtrmm, _ONE)
    multiply(_LEFT, _UPPER, flip, _NO, *sizes, one, *_columns(lower.T, kind), *_columns(columns, kind))


def _is_small(matrix: Array) -> bool:
    # Of what has gaps between its columns SciPy would overwrite a copy.
    return len(matrix) < _SMALL and matrix.flags.f_contiguous


def _columns(matrix: Floats, kind: np.dtype[Any] = _DOUBLE) -> tuple[int, int]:
    """Addresses of a matrix and of the distance of its columns."""
    if matrix.strides[0] != kind.itemsize or matrix.dtype != kind:
        raise ValueError(f"expected {kind} with contiguous columns, got {matrix.dtype} with strides {matrix.strides}")
    # The distance to the next column is anything if there is none, and then as long as this one.
    distance = max(matrix.strides[1] // kind.itemsize, len(matrix))
    return matrix.__array_interface__["data"][0], _size(distance)


@cache
def _size(number: int) -> int:
    return _address_of(_Int(number))
