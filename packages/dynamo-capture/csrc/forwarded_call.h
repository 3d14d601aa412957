/* A method that passes calls on to what its object keeps under a name. */
#ifndef FXS_FORWARDED_CALL_H
#define FXS_FORWARDED_CALL_H

#include "python_internals.h"

/* ForwardedCall(function, attribute, variables, flag): calling it on an object calls getattr(object, attribute) with the
 * other arguments; `function`, in Python, does the same, and is called itself unless variables[flag] is False. */
extern PyTypeObject FXSForwardedCall_Type;

#endif
