#include "shim.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "callbacks.h"

Shim shim;

static const char *const LIBRARIES[] = {"libtorch_cpu.so", "libtorch_python.so", "libtorch_cuda.so", "libc10.so"};
enum { LIBRARY_COUNT = sizeof(LIBRARIES) / sizeof(LIBRARIES[0]) };
static void *libraries[LIBRARY_COUNT];

typedef struct {
    const char *name;
    size_t offset;
    bool optional;
} Wanted;

#define WANTED(field, symbol) {symbol, offsetof(Shim, field), false}

static const Wanted WANTED_FUNCTIONS[] = {
    WANTED(delete_tensor_object, "aoti_torch_delete_tensor_object"),
    WANTED(new_tensor_handle, "aoti_torch_new_tensor_handle"),
    WANTED(empty_strided, "aoti_torch_empty_strided"),
    WANTED(copy_, "aoti_torch_copy_"),
    WANTED(get_dim, "aoti_torch_get_dim"),
    WANTED(get_sizes, "aoti_torch_get_sizes"),
    WANTED(get_strides, "aoti_torch_get_strides"),
    WANTED(get_dtype, "aoti_torch_get_dtype"),
    WANTED(get_data_ptr, "aoti_torch_get_data_ptr"),
    WANTED(get_device_type, "aoti_torch_get_device_type"),
    WANTED(get_device_index, "aoti_torch_get_device_index"),
    WANTED(is_defined, "aoti_torch_is_defined"),
    WANTED(grad_mode_is_enabled, "aoti_torch_grad_mode_is_enabled"),
    WANTED(grad_mode_set_enabled, "aoti_torch_grad_mode_set_enabled"),
    WANTED(device_type_cpu, "aoti_torch_device_type_cpu"),
    WANTED(dtype_uint8, "aoti_torch_dtype_uint8"),
    WANTED(autocast_is_enabled, "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE"),
    WANTED(autocast_set_enabled, "_ZN2at8autocast20set_autocast_enabledEN3c1010DeviceTypeEb"),
    WANTED(wrap, "_Z16THPVariable_WrapRKN2at10TensorBaseE"),
    {"torch_exception_get_what_without_backtrace", offsetof(Shim, exception_text), true},
    {"_ZN2at12hasCallbacksEv", offsetof(Shim, has_callbacks), true},
    {"aoti_record_function_start", offsetof(Shim, record_function_start), true},
    {"aoti_record_function_end", offsetof(Shim, record_function_end), true},
    {"torch_parallel_for", offsetof(Shim, parallel_for), true},
    {"_ZN2at13globalContextEv", offsetof(Shim, global_context), true},
    {"_ZNK2at7Context17userEnabledMkldnnEv", offsetof(Shim, mkldnn_is_enabled), true},
    {"_ZN2at6native13mkldnn_matmulERKNS_6TensorES3_S3_ff", offsetof(Shim, mkldnn_matmul), true},
};

static void *find(const char *name) {
    for (int i = 0; i < LIBRARY_COUNT; i++) {
        void *found = libraries[i] ? dlsym(libraries[i], name) : NULL;
        if (found) return found;
    }
    return NULL;
}

int shim_bind(void) {
    for (int i = 0; i < LIBRARY_COUNT; i++) {
        if (!libraries[i]) libraries[i] = dlopen(LIBRARIES[i], RTLD_NOW | RTLD_NOLOAD);
    }
    for (size_t i = 0; i < sizeof(WANTED_FUNCTIONS) / sizeof(WANTED_FUNCTIONS[0]); i++) {
        const Wanted *wanted = &WANTED_FUNCTIONS[i];
        void *found = find(wanted->name);
        if (!found && !wanted->optional) {
            PyErr_Format(PyExc_ImportError,
                         "this torch does not export %s; import torch first, and use a supported version", wanted->name);
            return -1;
        }
        memcpy((char *)&shim + wanted->offset, &found, sizeof(found));
    }
    return 0;
}

void *shim_lookup(const char *name) {
    void *own = callback_lookup(name);
    return own ? own : find(name);
}

void shim_raise(const char *doing) {
    const char *text = shim.exception_text ? shim.exception_text() : NULL;
    if (text && *text) {
        PyErr_SetString(PyExc_RuntimeError, text);
    } else {
        const char *hint = shim.exception_text ? "" : "; this version of torch wrote the reason to stderr";
        PyErr_Format(PyExc_RuntimeError, "%s failed in torch%s", doing, hint);
    }
}
