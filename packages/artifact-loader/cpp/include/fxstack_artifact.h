/* Runs artifacts of fxstack from C and C++, without Python: docs/artifacts.md describes the file and the trust model.
 *
 * Tensors are handles of torch's C interface (AtenTensorHandle): the address of an at::Tensor is one. The program links torch's
 * libraries; an artifact is for one minor version of torch, and entry points that run operators through Python are refused (FXA110)
 * before any native object is loaded.
 * Where an `error` is taken, it is room for a text of `room` bytes, which begins with a code such as [FXA103].
 */
#ifndef FXSTACK_ARTIFACT_H
#define FXSTACK_ARTIFACT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct FxaArtifact FxaArtifact;
typedef struct FxaEntryPoint FxaEntryPoint;
typedef struct FxaPass FxaPass;

/* The artifact at `path`: all of it is checked, then its weights are mapped and its native objects loaded. NULL if it is refused. */
FxaArtifact *fxa_load(const char *path, char *error, size_t room);

/* A tensor by the name of a model's parameter or buffer. */
typedef struct {
    const char *name;
    void *tensor;
} FxaWeight;

/* Weights that take the place of those in the artifact or beside it, and are needed where it was made with weights="outside". */
typedef struct {
    const FxaWeight *weights; /* borrowed for the time of loading */
    size_t weight_count;
    const char *weights_file; /* a safetensors file of those that are not among `weights`, which is mapped; or NULL */
} FxaLoadOptions;

/* fxa_load with weights of the caller's. Their dtypes and sizes must be those that the program takes (FXA201). The artifact computes
 * with the very tensors, which it holds, and writes to them where the model does; one whose strides are others is copied. */
FxaArtifact *fxa_load_with(const char *path, const FxaLoadOptions *options, char *error, size_t room);

/* No entry point may be used after this; results stay usable. */
void fxa_unload(FxaArtifact *artifact);

/* An entry point by name; NULL is the one named "forward", or the only one. NULL if there is none. It belongs to the artifact. */
const FxaEntryPoint *fxa_entry_point(const FxaArtifact *artifact, const char *name);

/* The tensors that a call takes, which are the leaves of the model's arguments in order, and their names ("x", "batch['ids']"); and
 * those that it gives, which are the leaves of the model's result in order ("result", "result[1]", "result.logits"). A number that varies
 * is a tensor without dimensions, int64 or float64. */
int64_t fxa_input_count(const FxaEntryPoint *entry);
const char *fxa_input_name(const FxaEntryPoint *entry, int64_t position);
int64_t fxa_result_count(const FxaEntryPoint *entry);
const char *fxa_result_name(const FxaEntryPoint *entry, int64_t position);

/* Check `inputs` (borrowed) against the contract and run. 0, and `results` are handles that the caller deletes
 * (aoti_torch_delete_tensor_object); else nothing was computed or written to `results`, and `error` says why. Any thread may call. */
int fxa_call(const FxaEntryPoint *entry, void *const *inputs, void **results, char *error, size_t room);

/* ---- training: entry points that were made with training=True. No autograd of torch's takes part. ---- */

/* The tensors of the model that the artifact computes with (borrowed, by the model's names): what an optimizer writes to. */
int64_t fxa_weight_count(const FxaArtifact *artifact);
const char *fxa_weight_name(const FxaArtifact *artifact, int64_t position);
void *fxa_weight(const FxaArtifact *artifact, const char *name);

/* The inputs and weights that get gradients, by name: none of an entry point for inference. */
int64_t fxa_gradient_count(const FxaEntryPoint *entry);
const char *fxa_gradient_name(const FxaEntryPoint *entry, int64_t position);

/* As fxa_call, and `pass` holds what the backward needs, until fxa_drop_pass, which must come before fxa_unload. */
int fxa_forward(const FxaEntryPoint *entry, void *const *inputs, void **results, FxaPass **pass, char *error, size_t room);

/* The gradients (owned handles, or NULL where there is none) by those of the results (borrowed; NULL: that result has none). May be
 * called again while what was saved is as it was: what torch wrote to since is refused; what is written to by address is not seen. */
int fxa_backward(const FxaPass *pass, void *const *gradients, void **made, char *error, size_t room);

void fxa_drop_pass(FxaPass *pass);

#ifdef __cplusplus
}
#endif

#endif
