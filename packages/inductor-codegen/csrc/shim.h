/* The functions of torch's C interface that the runtime itself calls, found by name in libraries that are already loaded. */
#ifndef INDUCTOR_CODEGEN_SHIM_H
#define INDUCTOR_CODEGEN_SHIM_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* An at::Tensor*, owned or borrowed: see each function. */
typedef void *Handle;

typedef struct {
    int32_t (*delete_tensor_object)(Handle);
    int32_t (*new_tensor_handle)(Handle, Handle *);
    int32_t (*empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, Handle *);
    int32_t (*copy_)(Handle, Handle, int32_t);
    int32_t (*get_dim)(Handle, int64_t *);
    int32_t (*get_sizes)(Handle, int64_t **);
    int32_t (*get_strides)(Handle, int64_t **);
    int32_t (*get_dtype)(Handle, int32_t *);
    int32_t (*get_data_ptr)(Handle, void **);
    int32_t (*get_device_type)(Handle, int32_t *);
    int32_t (*get_device_index)(Handle, int32_t *);
    int32_t (*is_defined)(Handle, bool *);
    bool (*grad_mode_is_enabled)(void);
    void (*grad_mode_set_enabled)(bool);
    int32_t (*device_type_cpu)(void);
    int32_t (*dtype_uint8)(void);
    PyObject *(*wrap)(Handle);
    bool (*autocast_is_enabled)(int8_t);        /* at::autocast, by device type */
    void (*autocast_set_enabled)(int8_t, bool);
    const char *(*exception_text)(void); /* NULL before torch 2.13 */
    bool (*has_callbacks)(void);         /* at: whether a profiler, or another observer of operators, is at work */
    int32_t (*record_function_start)(const char *, void *, void **, uint64_t, void **); /* may be NULL, as the next */
    int32_t (*record_function_end)(void *);
    int32_t (*parallel_for)(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void *), void *); /* may be NULL, as the next */
    void *(*global_context)(void);            /* at */
    bool (*mkldnn_is_enabled)(const void *);  /* at::Context */
    void (*mkldnn_matmul)(Handle, Handle, Handle, float, float); /* at::native: lhs, rhs, result, beta, alpha; raises in C++ */
} Shim;

extern Shim shim;

/* Fill `shim`. 0, or -1 with an ImportError that names the missing function. */
int shim_bind(void);

/* The address of a function of torch's or of this runtime's, or NULL: what a generated library is bound with. */
void *shim_lookup(const char *name);

/* Raise RuntimeError with the text of the C++ exception that the last shim call of this thread ended in. */
void shim_raise(const char *doing);

#endif
