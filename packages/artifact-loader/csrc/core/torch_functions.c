#define _GNU_SOURCE
#include "torch_functions.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

TorchFunctions torch_functions;

static const char *const LIBRARIES[] = {"libtorch_cpu.so", "libc10.so", "libtorch_cuda.so", "libc10_cuda.so"};
enum { LIBRARY_COUNT = sizeof(LIBRARIES) / sizeof(LIBRARIES[0]) };
static void *libraries[LIBRARY_COUNT];

typedef struct {
    const char *name;
    size_t offset;
    bool optional;
} Wanted;

#define WANTED(field, symbol) {symbol, offsetof(TorchFunctions, field), false}

static const Wanted WANTED_FUNCTIONS[] = {
    WANTED(delete_tensor_object, "aoti_torch_delete_tensor_object"),
    WANTED(new_tensor_handle, "aoti_torch_new_tensor_handle"),
    WANTED(empty_strided, "aoti_torch_empty_strided"),
    WANTED(copy_, "aoti_torch_copy_"),
    WANTED(get_data_ptr, "aoti_torch_get_data_ptr"),
    WANTED(get_dim, "aoti_torch_get_dim"),
    WANTED(get_sizes, "aoti_torch_get_sizes"),
    WANTED(get_strides, "aoti_torch_get_strides"),
    WANTED(get_dtype, "aoti_torch_get_dtype"),
    WANTED(get_layout, "aoti_torch_get_layout"),
    WANTED(get_device_type, "aoti_torch_get_device_type"),
    WANTED(get_device_index, "aoti_torch_get_device_index"),
    WANTED(is_defined, "aoti_torch_is_defined"),
    WANTED(grad_mode_is_enabled, "aoti_torch_grad_mode_is_enabled"),
    WANTED(grad_mode_set_enabled, "aoti_torch_grad_mode_set_enabled"),
    WANTED(dtype_uint8, "aoti_torch_dtype_uint8"),
    WANTED(layout_strided, "aoti_torch_layout_strided"),
    WANTED(autocast_is_enabled, "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE"),
    WANTED(autocast_set_enabled, "_ZN2at8autocast20set_autocast_enabledEN3c1010DeviceTypeEb"),
    WANTED(requires_grad, "_ZNK3c1010TensorImpl13requires_gradEv"),
    WANTED(is_conj, "_ZN2at6native7is_conjERKNS_6TensorE"),
    WANTED(is_neg, "_ZN2at6native6is_negERKNS_6TensorE"),
    {"torch_exception_get_what_without_backtrace", offsetof(TorchFunctions, exception_text), true},
};

void *fxa_torch_function(const char *name) {
    for (int i = 0; i < LIBRARY_COUNT; i++) {
        void *found = libraries[i] ? dlsym(libraries[i], name) : NULL;
        if (found) return found;
    }
    return NULL;
}

FxaCode fxa_find_torch(FxaError *error) {
    for (int i = 0; i < LIBRARY_COUNT; i++) {
        if (!libraries[i]) libraries[i] = dlopen(LIBRARIES[i], RTLD_NOW | RTLD_NOLOAD);
    }
    for (size_t i = 0; i < sizeof(WANTED_FUNCTIONS) / sizeof(WANTED_FUNCTIONS[0]); i++) {
        const Wanted *wanted = &WANTED_FUNCTIONS[i];
        void *found = fxa_torch_function(wanted->name);
        if (!found && !wanted->optional) {
            return fxa_fail(error, FXA_NO_TORCH, "torch is not loaded, or is of a version without %s", wanted->name);
        }
        memcpy((char *)&torch_functions + wanted->offset, &found, sizeof(found));
    }
    return FXA_OK;
}

const char *fxa_torch_says(void) {
    const char *text = torch_functions.exception_text ? torch_functions.exception_text() : NULL;
    return text && *text ? text : "an operator failed in torch";
}
