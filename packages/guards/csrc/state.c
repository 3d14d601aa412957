/* Process and thread state of torch, read through exported functions of its libraries. */
#define _GNU_SOURCE
#include "native.h"

#include <dlfcn.h>

typedef enum { FLAG, FLAG_OF_CONTEXT, FLAG_OF_DEVICE, NUMBER8, NUMBER32, NUMBER64, INCLUDED, EXCLUDED, AUTOCAST } Shape;

typedef struct {
    const char *name; /* the fact's name in fx_guards/kinds/state.py */
    const char *library, *symbol;
    Shape shape;
    int device;
    void *address;
} Reader;

#define CPU "libtorch_cpu.so"
#define C10 "libc10.so"
#define TLS "_ZN3c104impl26raw_local_dispatch_key_setE"
#define CONTEXT(name, method) {name, CPU, "_ZNK2at7Context" method, FLAG_OF_CONTEXT, 0, NULL}
#define AUTOCAST_OF(name, device) {name, CPU, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE", AUTOCAST, device, NULL}

static Reader readers[] = {
    {"grad_mode", C10, "_ZN3c108GradMode10is_enabledEv", FLAG, 0, NULL},
    {"inference_mode", C10, "_ZN3c1013InferenceMode10is_enabledEv", FLAG, 0, NULL},
    {"default_dtype", C10, "_ZN3c1031get_default_dtype_as_scalartypeEv", NUMBER8, 0, NULL},
    {"dispatch_included", C10, TLS, INCLUDED, 0, NULL},
    {"dispatch_excluded", C10, TLS, EXCLUDED, 0, NULL},
    {"torch_function_depth", CPU, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", NUMBER64, 0, NULL},
    {"torch_function_state", CPU, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv", NUMBER32, 0, NULL},
    {"num_threads", CPU, "_ZN2at15get_num_threadsEv", NUMBER32, 0, NULL},
    AUTOCAST_OF("autocast_cpu", 0),
    AUTOCAST_OF("autocast_cuda", 1),
    {"autocast_cache", CPU, "_ZN2at8autocast25is_autocast_cache_enabledEv", FLAG, 0, NULL},
    CONTEXT("deterministic", "23deterministicAlgorithmsEv"),
    CONTEXT("deterministic_warn_only", "31deterministicAlgorithmsWarnOnlyEv"),
    CONTEXT("deterministic_fill", "36deterministicFillUninitializedMemoryEv"),
    CONTEXT("cudnn_enabled", "16userEnabledCuDNNEv"),
    CONTEXT("cudnn_benchmark", "14benchmarkCuDNNEv"),
    CONTEXT("cudnn_deterministic", "18deterministicCuDNNEv"),
    CONTEXT("mkldnn_enabled", "17userEnabledMkldnnEv"),
    CONTEXT("sdp_flash", "19userEnabledFlashSDPEv"),
    CONTEXT("sdp_math", "18userEnabledMathSDPEv"),
    CONTEXT("sdp_mem_efficient", "26userEnabledMemEfficientSDPEv"),
    CONTEXT("sdp_cudnn", "19userEnabledCuDNNSDPEv"),
    CONTEXT("sdp_overrideable", "26userEnabledOverrideableSDPEv"),
};
enum { N_READERS = sizeof readers / sizeof *readers };

static void *context; /* torch keeps one for the whole process */
static int (*autocast_enabled)(signed char device);

static void *find(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == NULL) return NULL;
    void *found = dlsym(handle, name);
    dlclose(handle);
    return found;
}

/* A thread-local variable has another address in each thread. Asked for in every call: not by way of the linker. */
#if defined(__GLIBC__) && defined(__GNUC__)
#define THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#else
#define THREAD_LOCAL __thread
#endif
static THREAD_LOCAL uint64_t *local_keys;

static inline uint64_t *thread_keys(void) {
    if (local_keys == NULL) local_keys = find(C10, TLS);
    return local_keys;
}

/* Finds each reader's function; those that this torch lacks stay without. Returns how many were found. */
int state_bind(void) {
    int found = 0;
    void *(*global_context)(void) = (void *(*)(void))find(CPU, "_ZN2at13globalContextEv");
    context = global_context == NULL ? NULL : global_context();
    autocast_enabled = (int (*)(signed char))find(CPU, "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE");
    for (int i = 0; i < N_READERS; i++) {
        Reader *reader = &readers[i];
        int needs = (reader->shape == FLAG_OF_CONTEXT && context == NULL) ||
                    (reader->shape == AUTOCAST && autocast_enabled == NULL);
        reader->address = needs ? NULL : find(reader->library, reader->symbol);
        found += reader->address != NULL;
    }
    return found;
}

int state_reader(const char *name) {
    for (int i = 0; i < N_READERS; i++)
        if (strcmp(readers[i].name, name) == 0) return readers[i].address == NULL ? -1 : i;
    return -1;
}

static inline uint64_t read_now(const Reader *reader) {
    void *address = reader->address;
    switch (reader->shape) {
    case FLAG: return (((int (*)(void))address)() & 0xff) != 0;
    case FLAG_OF_CONTEXT: return (((int (*)(void *))address)(context) & 0xff) != 0;
    case FLAG_OF_DEVICE: return (((int (*)(signed char))address)((signed char)reader->device) & 0xff) != 0;
    case NUMBER8: return (uint64_t)(((int (*)(void))address)() & 0xff);
    case NUMBER32: return (uint64_t)(int64_t)((int (*)(void))address)();
    case NUMBER64: return (uint64_t)((int64_t (*)(void))address)();
    case INCLUDED: return thread_keys() == NULL ? 0 : thread_keys()[0];
    case EXCLUDED: return thread_keys() == NULL ? 0 : thread_keys()[1];
    case AUTOCAST:
        if ((autocast_enabled((signed char)reader->device) & 0xff) == 0) return UINT64_MAX;
        return (uint64_t)(((int (*)(signed char))address)((signed char)reader->device) & 0xff);
    }
    return 0;
}

uint64_t state_read(int index) { return read_now(&readers[index]); }

/* `facts`: pairs of a reader and what it reads if the state is as it was. */
int state_holds(const int64_t *facts, Py_ssize_t count) {
    for (const int64_t *fact = facts; fact + 1 < facts + count; fact += 2)
        if (read_now(&readers[fact[0]]) != (uint64_t)fact[1]) return 0;
    return 1;
}

/* The names of the readers that were found. */
PyObject *state_names(void) {
    PyObject *names = PyDict_New();
    for (int i = 0; names != NULL && i < N_READERS; i++) {
        if (readers[i].address == NULL) continue;
        PyObject *index = PyLong_FromLong(i);
        if (index == NULL || PyDict_SetItemString(names, readers[i].name, index) < 0) Py_CLEAR(names);
        Py_XDECREF(index);
    }
    return names;
}
