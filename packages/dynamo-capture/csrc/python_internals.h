/* CPython's internal frame headers, and the shim for the version compiled against. */
#ifndef FXS_PYTHON_INTERNALS_H
#define FXS_PYTHON_INTERNALS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef Py_GIL_DISABLED
#error "the frame hook relies on the GIL; free-threaded builds are not supported"
#endif

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include "internal/pycore_frame.h"

#if PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#include "internal/pycore_ceval.h"
#include "frame_313.h"
#elif PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#include "frame_312.h"
#elif PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "frame_311.h"
#else
#error "CPython 3.11, 3.12 and 3.13 are supported"
#endif

#define FXS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FXS_LIKELY(x) __builtin_expect(!!(x), 1)

#endif
