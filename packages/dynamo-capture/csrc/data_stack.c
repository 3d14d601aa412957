/* CPython keeps the frames of Python functions in chunks of 16 KB. The call that finds no place in a chunk maps another
 * one, and unmaps it when it returns: a loop that stands at the end of a chunk does so at each of its calls, for ten times
 * what a call costs. A compiler is deep and calls much: thousands of these in a second. Here it gets a chunk in which all
 * its frames have a place; pages that it does not use cost nothing. */
#include "data_stack.h"

enum { ROOM = 1 << 20 };

PyObject *fxs_call_with_room(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "call_with_room(function, *args)");
        return NULL;
    }
    PyObjectArenaAllocator pages; /* those that CPython's own chunks come from, and that a thread's end gives them back to */
    PyObject_GetArenaAllocator(&pages);
    PyThreadState *tstate = PyThreadState_Get();
    _PyStackChunk *below = tstate->datastack_chunk;
    _PyStackChunk *room = below == NULL ? NULL : pages.alloc(pages.ctx, ROOM);
    if (room == NULL) {
        return PyObject_Vectorcall(args[0], args + 1, (size_t)(count - 1), NULL);
    }
    PyObject **top = tstate->datastack_top, **limit = tstate->datastack_limit;
    below->top = (size_t)(top - below->data);
    room->previous = below;
    room->size = ROOM;
    room->top = 0;
    tstate->datastack_chunk = room;
    tstate->datastack_top = room->data + 1; /* the frame that had the first place would free the chunk when it ends */
    tstate->datastack_limit = (PyObject **)((char *)room + ROOM);
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)(count - 1), NULL);
    if (tstate->datastack_chunk == room) {
        tstate->datastack_chunk = below;
        tstate->datastack_top = top;
        tstate->datastack_limit = limit;
        pages.free(pages.ctx, room, ROOM);
    }
    return result;
}
