/* What the hook touches of a frame, on CPython 3.13. */
#ifndef FXS_FRAME_H
#define FXS_FRAME_H

#define FXS_FRAME_CODE(frame) ((PyCodeObject *)(frame)->f_executable)
#define FXS_FRAME_FUNCTION(frame) ((frame)->f_funcobj)

/* C recursion that one evaluator call takes and a plain Python-to-Python call does not. */
#define FXS_EVALUATOR_UNITS 2
#define FXS_RECURSION_GIVE_BACK(tstate) ((tstate)->c_recursion_remaining += FXS_EVALUATOR_UNITS)
#define FXS_RECURSION_TAKE_BACK(tstate) ((tstate)->c_recursion_remaining -= FXS_EVALUATOR_UNITS)

static inline int fxs_frame_at_start(_PyInterpreterFrame *frame)
{
    return frame->instr_ptr == _PyCode_CODE(FXS_FRAME_CODE(frame));
}

/* Slots of the data stack that a frame of `code` takes. */
static inline Py_ssize_t fxs_code_frame_size(PyCodeObject *code)
{
    return code->co_framesize;
}

/* Let frames of `code` made from now on take at least `size` slots. */
static inline void fxs_code_reserve(PyCodeObject *code, Py_ssize_t size)
{
    if (code->co_framesize < size) {
        code->co_framesize = (int)size;
    }
}

/* Make a frame that has not started start in `code` instead; takes over a reference to `code`, gives up the old one. */
static inline void fxs_frame_set_code(_PyInterpreterFrame *frame, PyCodeObject *code)
{
    PyObject *old = frame->f_executable;
    frame->f_executable = (PyObject *)code;
    frame->instr_ptr = _PyCode_CODE(code);
    frame->stacktop = code->co_nlocalsplus;
    Py_DECREF(old);
}

/* Make a frame that never runs look as if it had come to the instruction at `offset`, in bytes. */
static inline void fxs_frame_set_offset(_PyInterpreterFrame *frame, PyCodeObject *code, int offset)
{
    frame->instr_ptr = _PyCode_CODE(code) + offset / (int)sizeof(_Py_CODEUNIT);
}

#define fxs_request_extra_index PyUnstable_Eval_RequestCodeExtraIndex
#define fxs_get_extra PyUnstable_Code_GetExtra
#define fxs_set_extra PyUnstable_Code_SetExtra

#endif
