#define _GNU_SOURCE
#include "graph.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Calls with up to this many words of room need no heap memory. */
enum { INLINE_WORDS = 1024 };

/* ---- opening ---- */

static void *look_up(const char *name) {
    void *own = fxa_callback(name);
    return own ? own : fxa_torch_function(name);
}

static FxaCode bind_entry(Graph *graph, FxaError *error) {
    const int32_t *version = dlsym(graph->library.handle, "fx_abi");
    int32_t (*bind)(void *(*)(const char *), const char **) =
        (int32_t (*)(void *(*)(const char *), const char **))dlsym(graph->library.handle, "fx_bind");
    graph->entry = (Entry)dlsym(graph->library.handle, "fx_entry");
    if (!version || *version != FXA_ENTRY_ABI || !graph->entry || !bind) {
        return fxa_fail(error, FXA_NOT_LOADED, "a native object is no compiled graph of this version");
    }
    const GpuTable *table = dlsym(graph->library.handle, "fx_gpu_variants");
    FxaCode code = table ? fxa_gpu_open(&graph->gpu, table, error) : FXA_OK;
    if (code) return code;
    const char *missing = "?";
    if (bind(look_up, &missing)) {
        return fxa_fail(error, FXA_NOT_LOADED, "a native object needs %s, which this torch does not export", missing);
    }
    return FXA_OK;
}

FxaCode fxa_graph_open(Graph *graph, Contract *contract, const void *content, size_t size, const Handle *constants,
                       FxaError *error) {
    graph->contract = *contract;
    memset(contract, 0, sizeof(*contract));
    int64_t count = graph->contract.constant_count;
    graph->constants = calloc(count + 1, sizeof(Handle));
    if (!graph->constants) return fxa_fail(error, FXA_NO_MEMORY, "out of memory");
    for (int64_t i = 0; i < count; i++) {
        if (torch_functions.new_tensor_handle(constants[i], &graph->constants[i])) {
            return fxa_fail(error, FXA_TORCH, "%s", fxa_torch_says());
        }
    }
    FxaCode code = fxa_library_open(&graph->library, content, size, error);
    return code ? code : bind_entry(graph, error);
}

void fxa_graph_close(Graph *graph) {
    fxa_drop_scratch();
    for (int64_t i = 0; graph->constants && i < graph->contract.constant_count; i++) {
        if (graph->constants[i]) torch_functions.delete_tensor_object(graph->constants[i]);
    }
    free(graph->constants);
    fxa_gpu_close(&graph->gpu);
    fxa_library_close(&graph->library);
    fxa_contract_free(&graph->contract);
    memset(graph, 0, sizeof(*graph));
}

/* ---- a call ---- */

static void gather(const Graph *graph, const Value *leaves, const int64_t *symbols, Handle *tensors, int64_t *numbers) {
    const Contract *contract = &graph->contract;
    for (int64_t i = 0; i < contract->input_count; i++) {
        const Input *input = &contract->inputs[i];
        switch (input->kind) {
            case INPUT_LEAF: *tensors++ = leaves[input->index].tensor; break;
            case INPUT_CONSTANT: *tensors++ = graph->constants[input->index]; break;
            case INPUT_SYMBOL: *numbers++ = symbols[input->index]; break;
            case INPUT_FLOAT: *numbers++ = leaves[input->index].number; break;
        }
    }
}

/* The entry runs as under no_grad and without autocast: what it calls must not be recorded by autograd, and the graph has the casts
that autocast made when it was captured. */
static int32_t enter(Graph *graph, const Handle *tensors, const int64_t *numbers, Handle *results, int64_t *result_numbers) {
    enum { CPU = 0, CUDA = 1 };
    bool grad_mode = torch_functions.grad_mode_is_enabled(), autocast = torch_functions.autocast_is_enabled(CPU);
    bool autocast_there = graph->gpu.table && torch_functions.autocast_is_enabled(CUDA);
    if (grad_mode) torch_functions.grad_mode_set_enabled(false);
    if (autocast) torch_functions.autocast_set_enabled(CPU, false);
    if (autocast_there) torch_functions.autocast_set_enabled(CUDA, false);
    int32_t code = graph->entry(graph, tensors, numbers, results, result_numbers);
    if (autocast_there) torch_functions.autocast_set_enabled(CUDA, true);
    if (autocast) torch_functions.autocast_set_enabled(CPU, true);
    if (grad_mode) torch_functions.grad_mode_set_enabled(true);
    return code;
}

/* Tensors that the program wrote get their new content, where the graph has not written it there. `made` are the results that are
tensors. */
static FxaCode write_back(const Graph *graph, const Value *leaves, const Handle *by_result, FxaError *error) {
    for (int64_t i = 0; i < graph->contract.write_count; i++) {
        const Write *write = &graph->contract.writes[i];
        Handle target = write->kind == INPUT_LEAF ? leaves[write->index].tensor : graph->constants[write->index];
        Handle content = by_result[write->result];
        if (*(void **)target == *(void **)content) continue;
        bool grad_mode = torch_functions.grad_mode_is_enabled();
        if (grad_mode) torch_functions.grad_mode_set_enabled(false);
        int32_t bad = torch_functions.copy_(target, content, 0);
        if (grad_mode) torch_functions.grad_mode_set_enabled(true);
        if (bad) return fxa_fail(error, FXA_TORCH, "%s", fxa_torch_says());
    }
    return FXA_OK;
}

static void drop(Handle *handles, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (handles[i]) torch_functions.delete_tensor_object(handles[i]);
        handles[i] = NULL;
    }
}

/* `room` is zeroed: symbols, tensors (twice), numbers, packed results. */
static FxaCode run_in(Graph *graph, const Value *leaves, int64_t *room, Handle *results, int64_t *numbers, FxaError *error) {
    const Contract *contract = &graph->contract;
    int64_t inputs = contract->input_count;
    int64_t *symbols = room, *given = room + contract->symbol_count + 2 * inputs;
    Handle *tensors = (Handle *)(room + contract->symbol_count), *packed = (Handle *)(given + inputs);
    FxaCode code = fxa_contract_check(contract, leaves, symbols, error);
    if (code) return code;
    gather(graph, leaves, symbols, tensors, given);
    FxaError *before = fxa_pending;
    error->code = FXA_OK;
    fxa_pending = error;
    int32_t returned = enter(graph, tensors, given, packed, numbers);
    fxa_pending = before;
    if (returned != ENTRY_OK) {
        drop(packed, contract->result_count);
        if (returned == ENTRY_HOST_ERROR && error->code) return error->code;
        return fxa_fail(error, FXA_TORCH, "%s", fxa_torch_says());
    }
    for (int64_t i = 0, next = 0; i < contract->result_count; i++) {
        results[i] = contract->results[i] == RESULT_TENSOR ? packed[next++] : NULL;
    }
    code = write_back(graph, leaves, results, error);
    if (code) drop(results, contract->result_count);
    return code;
}

FxaCode fxa_graph_run(Graph *graph, const Value *leaves, Handle *results, int64_t *numbers, FxaError *error) {
    const Contract *contract = &graph->contract;
    int64_t words = contract->symbol_count + 3 * contract->input_count + contract->result_count + 1;
    if (words <= INLINE_WORDS) {
        int64_t room[INLINE_WORDS];
        memset(room, 0, words * sizeof(int64_t));
        return run_in(graph, leaves, room, results, numbers, error);
    }
    int64_t *room = calloc(words, sizeof(int64_t));
    if (!room) return fxa_fail(error, FXA_NO_MEMORY, "out of memory");
    FxaCode code = run_in(graph, leaves, room, results, numbers, error);
    free(room);
    return code;
}
