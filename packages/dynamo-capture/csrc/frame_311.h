/* What the hook touches of a frame, on CPython 3.11. */
#ifndef FXS_FRAME_H
#define FXS_FRAME_H

#define FXS_FRAME_CODE(frame) ((frame)->f_code)
#define FXS_FRAME_FUNCTION(frame) ((PyObject *)(frame)->f_func)

/* C recursion that one evaluator call takes and a plain Python-to-Python call does not: 3.11 counts both alike. */
#define FXS_RECURSION_GIVE_BACK(tstate) ((void)(tstate))
#define FXS_RECURSION_TAKE_BACK(tstate) ((void)(tstate))

static inline int fxs_frame_at_start(_PyInterpreterFrame *frame)
{
    return frame->prev_instr == _PyCode_CODE(frame->f_code) - 1;
}

/* Slots of the data stack that a frame of `code` takes. */
static inline Py_ssize_t fxs_code_frame_size(PyCodeObject *code)
{
    return code->co_nlocalsplus + code->co_stacksize + (Py_ssize_t)FRAME_SPECIALS_SIZE;
}

/* Let frames of `code` made from now on take at least `size` slots. */
static inline void fxs_code_reserve(PyCodeObject *code, Py_ssize_t size)
{
    if (fxs_code_frame_size(code) < size) {
        code->co_stacksize += (int)(size - fxs_code_frame_size(code));
    }
}

/* Make a frame that has not started start in `code` instead; takes over a reference to `code`, gives up the old one. */
static inline void fxs_frame_set_code(_PyInterpreterFrame *frame, PyCodeObject *code)
{
    PyCodeObject *old = frame->f_code;
    frame->f_code = code;
    frame->prev_instr = _PyCode_CODE(code) - 1;
    frame->stacktop = code->co_nlocalsplus;
    Py_DECREF(old);
}

/* Make a frame that never runs look as if it had come to the instruction at `offset`, in bytes. */
static inline void fxs_frame_set_offset(_PyInterpreterFrame *frame, PyCodeObject *code, int offset)
{
    frame->prev_instr = _PyCode_CODE(code) + offset / (int)sizeof(_Py_CODEUNIT);
}

#define fxs_request_extra_index _PyEval_RequestCodeExtraIndex
#define fxs_get_extra _PyCode_GetExtra
#define fxs_set_extra _PyCode_SetExtra

#endif
