/* The functions of torch's C interface that the core calls, found by name in libraries that are already loaded. */
#ifndef FXA_TORCH_FUNCTIONS_H
#define FXA_TORCH_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "errors.h"

/* An at::Tensor*, owned or borrowed: see each function. */
typedef void *Handle;

typedef struct {
    int32_t (*delete_tensor_object)(Handle);
    int32_t (*new_tensor_handle)(Handle, Handle *);
    int32_t (*empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, Handle *);
    int32_t (*copy_)(Handle, Handle, int32_t);
    int32_t (*get_data_ptr)(Handle, void **);
    int32_t (*get_dim)(Handle, int64_t *);
    int32_t (*get_sizes)(Handle, int64_t **);
    int32_t (*get_strides)(Handle, int64_t **);
    int32_t (*get_dtype)(Handle, int32_t *);
    int32_t (*get_layout)(Handle, int32_t *);
    int32_t (*get_device_type)(Handle, int32_t *);
    int32_t (*get_device_index)(Handle, int32_t *);
    int32_t (*is_defined)(Handle, bool *);
    bool (*grad_mode_is_enabled)(void);
    void (*grad_mode_set_enabled)(bool);
    int32_t (*dtype_uint8)(void);
    int32_t (*layout_strided)(void);
    bool (*autocast_is_enabled)(int8_t); /* at::autocast, by device type */
    void (*autocast_set_enabled)(int8_t, bool);
    bool (*requires_grad)(const void *); /* c10::TensorImpl, the word that a handle points to */
    bool (*is_conj)(Handle);
    bool (*is_neg)(Handle);
    const char *(*exception_text)(void); /* NULL before torch 2.13 */
} TorchFunctions;

extern TorchFunctions torch_functions;

/* Fill `torch_functions`; FXA_NO_TORCH names what is missing. */
FxaCode fxa_find_torch(FxaError *error);

/* The address of a function of torch's, or NULL. */
void *fxa_torch_function(const char *name);

/* The text of the C++ exception that the last call of this thread ended in. */
const char *fxa_torch_says(void);

#endif
