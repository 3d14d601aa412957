/* A function that runs with a callback active in its thread. */
#ifndef FXS_REGION_H
#define FXS_REGION_H

#include "python_internals.h"

extern PyTypeObject FXSRegion_Type;

#endif
