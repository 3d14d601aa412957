/* What generated code calls back into: input checks, scratch memory, operators without a C entry, and errors. */
#ifndef INDUCTOR_CODEGEN_CALLBACKS_H
#define INDUCTOR_CODEGEN_CALLBACKS_H

/* The address of the callback `name`, or NULL. */
void *callback_lookup(const char *name);

#endif
