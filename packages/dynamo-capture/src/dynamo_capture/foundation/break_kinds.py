"""The catalogue of graph breaks: a stable code, what was met, why the graph ends there, and what to change.

docs/graph-breaks.md is made from it by tools/graph_breaks_page.py, which loads this file alone: it imports nothing.
"""

from __future__ import annotations

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakKind:
    """One entry of the catalogue."""

    code: str
    summary: str
    why: str
    advice: str


KINDS: dict[str, BreakKind] = {}
"""Every kind of break by its code."""


def _kind(code: str, summary: str, why: str, advice: str) -> str:
    """Put a kind into the catalogue. Its name is its code: that is what a break and a report hold."""
    assert code not in KINDS, code
    KINDS[code] = BreakKind(code, summary, why, advice)
    return code


UNSUPPORTED = _kind(
    "CAP200",
    "the program does something that cannot be captured",
    "the translator has no rule for it",
    "leave it out",
)
CONTENT_DECIDES = _kind(
    "CAP201",
    "a tensor's content decides",
    "the graph is made before the tensor has content, and is used again with other content",
    "choose with torch.where, masks or torch.cond in place of Python's if and while; keep .tolist() outside",
)
TENSOR_AS_INDEX = _kind(
    "CAP202",
    "a tensor is used as a Python index",
    "which item that is, only the tensor's content says",
    "index a tensor with it, or keep the index as a Python integer",
)
RUNS_AUTOGRAD = _kind(
    "CAP203",
    "autograd is run inside",
    "the backward pass is made from the whole graph, after it has ended; a graph that holds all that a gradient "
    "leads through can hold `torch.autograd.grad`",
    "call backward() outside of the compiled function",
)
TENSOR_MEMORY = _kind(
    "CAP204",
    "a tensor's memory is asked for",
    "tensors inside of a graph may never have memory of their own",
    "keep storages and addresses out of the compiled function",
)
HOOKED_TENSOR = _kind(
    "CAP205",
    "a tensor with a hook is changed, or a hook is not followed",
    "a hook is registered when the graph has run: what is changed before has another history then",
    "register hooks on tensors that are not written to afterwards",
)
UNTRACEABLE = _kind(
    "CAP206",
    "an operation cannot be traced",
    "what the operation returns cannot be told without running it on data",
    "wrap it in dynamo_capture.allow_in_graph if it has no side effects, or leave it out",
)
UNKNOWN_ARGUMENT = _kind(
    "CAP207",
    "a torch function gets an unknown object",
    "a graph's operations take tensors, numbers and containers of them",
    "pass tensors, numbers, and containers of them",
)
AUTOGRAD_STATE = _kind(
    "CAP208",
    "a tensor's autograd state is used",
    "gradients and autograd's nodes exist only when the program runs",
    "read it outside of the compiled function",
)
RANDOM_STATE = _kind(
    "CAP209",
    "the random state is used",
    "a generator's state changes with every run",
    "seed generators outside of the compiled function",
)
OBJECT_OPERATION = _kind(
    "CAP210",
    "an operation on a Python object is not supported",
    "the translator does not know what the operation does to this kind of object",
    "rewrite it with plain containers and numbers, or leave it out",
)
UNKNOWN_VALUE = _kind(
    "CAP211",
    "a value must be known",
    "Python code is chosen by this value, and it is known only when the program runs",
    "compute it from constants, arguments or sizes; if it is a tensor's, choose with torch.where in place of `if`",
)
UNKNOWN_HASH = _kind(
    "CAP212",
    "a hash cannot be known",
    "the object's own __hash__ may give another result when the program runs",
    "use strings, numbers or the object itself as keys",
)
CONTAINER_CLASS = _kind(
    "CAP213",
    "a container cannot be followed",
    "the class changes how a builtin container works",
    "use a list, tuple or dict",
)
DESCRIPTOR = _kind(
    "CAP214",
    "a descriptor cannot be followed",
    "the attribute is computed by code that is not written in Python",
    "use a property written in Python",
)
DEFINITION_CHANGED = _kind(
    "CAP215",
    "a class, function or module is changed",
    "code that is already compiled relies on it",
    "do so outside of the compiled function",
)
UNUSUAL_TENSOR = _kind(
    "CAP216",
    "a tensor of an unusual kind",
    "quantized, wrapped and sparse tensors have no strided memory; of sparse ones some operations are known",
    "pass plain strided tensors",
)
DATA_NUMBER = _kind(
    "CAP217",
    "a number from data decides",
    "how many elements a mask selects, or which number a tensor holds, is known only when the graph runs",
    "state what holds with torch._check or torch._check_is_size, or use torch.where instead of Python control flow",
)
UNSUPPORTED_INSTRUCTION = _kind(
    "CAP220",
    "an instruction is not supported",
    "the translator has no rule for this bytecode instruction",
    "move the construct out of the compiled function",
)
EMPTY_CELL = _kind(
    "CAP221",
    "a variable that functions share has no value",
    "it may have one in the next call, and guards read only what is there",
    "give the variable a value before the function that reads it is called",
)
NESTED_TOO_DEEPLY = _kind(
    "CAP222",
    "calls are nested too deeply",
    "every call is traced into, and the stack of the tracer is bounded",
    "turn the recursion into a loop",
)
COROUTINE = _kind(
    "CAP223",
    "a coroutine",
    "it is suspended and resumed by an event loop, which is no part of the program",
    "compile the synchronous part",
)
TOO_MANY_INSTRUCTIONS = _kind(
    "CAP224",
    "too many instructions in one graph",
    "a loop that waits for the outside would be traced for ever",
    "compile what the loop does, not the loop",
)
NO_LOOKAHEAD = _kind(
    "CAP225",
    "an iterator cannot be read ahead",
    "a graph that holds several rounds of a loop takes all their items when it starts",
    "change the list or dict that is iterated over after the loop, or iterate over a copy",
)
GRADIENT_ASKED = _kind(
    "CAP226",
    "gradients are asked for of a tensor that the graph makes",
    "its gradient arrives from outside, at a tensor that must exist before what depends on it is computed",
    "make the tensor outside of the compiled function, or use it only for gradients that are taken there",
)
NOT_IN_PYTHON = _kind(
    "CAP230",
    "a function that is not written in Python",
    "there is no bytecode to trace, and it is not known to be free of side effects",
    "use torch's functions, or call it outside of the compiled function",
)
BREAK_REQUESTED = _kind(
    "CAP231",
    "a break was asked for",
    "graph_break(), a function marked by disable() or one optimized with other options was called",
    "remove it to capture more",
)
CLASS_MADE = _kind(
    "CAP232",
    "a class is made",
    "every run would make another class, and compiled code knows objects by their class",
    "define classes at module level; those of functions and constants, from Python's own classes, are captured",
)
C_OBJECT_MADE = _kind(
    "CAP233",
    "an object of a class written in C is made",
    "the translator cannot say what it holds",
    "make it outside and pass it in",
)
NAMESPACE_ACCESS = _kind(
    "CAP234",
    "a namespace is asked for",
    "locals(), globals() and vars() show variables that compiled code does not keep",
    "pass the values explicitly",
)
OBJECT_ADDRESS = _kind(
    "CAP235",
    "an object's address is asked for",
    "an object that the program makes has no address while it is traced",
    "compare objects with `is`",
)
OUTSIDE_WORLD = _kind(
    "CAP236",
    "the outside world is talked to",
    "files, processes and clocks must be asked in every run, at that point",
    "print, log and do file work outside of the compiled function",
)
TORCH_STATE_CHANGED = _kind(
    "CAP237",
    "torch's global state is changed",
    "compiled code is valid for the state in which it was made",
    "change it outside of the compiled function",
)
SUBCLASS_TAKES_OVER = _kind(
    "CAP238",
    "a tensor subclass takes over",
    "its __torch_function__ is traced, but not where torch or the program asks for it in a way of its own",
    "keep to calls of torch's functions and methods on it, or pass plain tensors",
)
OTHER_INTERPRETER = _kind(
    "CAP239",
    "another interpreter is at work",
    "torch.jit.trace, make_fx, a mode or forward-mode differentiation has to see each operator, and a compiled graph"
    " runs kernels; in a transform of torch.func, what depends on which transform follows a tensor is left to Python",
    "call the compiled function outside of it; inside, the program runs as written",
)
NOT_RECONSTRUCTIBLE = _kind(
    "CAP240",
    "a value cannot be handed back",
    "the object is half-way through its work and cannot be made anew in that state",
    "consume iterators and generators inside of the compiled function",
)
NOT_RESUMABLE = _kind(
    "CAP241",
    "a break at a place that cannot be resumed",
    "what Python keeps at that place (a handled exception, a mode) cannot be set up by another function",
    "move the breaking line out of the loop, handler or block, or leave it out",
)
REGION_EFFECT = _kind(
    "CAP242",
    "a part that is a region changes something",
    "what runs again in the backward, or later, must not change objects, tensors or modes of its surroundings",
    "return what it computes, and change things outside of it",
)
AUTOGRAD_FUNCTION = _kind(
    "CAP243",
    "an autograd function in a form that cannot be captured",
    "a graph holds one backward, which takes a gradient for each result and gives one for each argument",
    "return new tensors, save tensors by save_for_backward, and keep the backward to torch operations",
)
CHECKPOINT = _kind(
    "CAP244",
    "a checkpoint in a form that cannot be captured",
    "a graph recomputes a part with the same random numbers, and gives gradients to all that the part uses",
    "call torch.utils.checkpoint.checkpoint(..., use_reentrant=False) without debug; a context_fn returns what "
    "create_selective_checkpoint_contexts gives",
)
LEAVES_REGION = _kind(
    "CAP245",
    "a tensor leaves a region other than as its result",
    "what is inside of such a region exists only while it runs",
    "return the tensor",
)
TRANSFORM = _kind(
    "CAP246",
    "a function transform of a form that a graph does not hold",
    "the transform is captured as one part of the graph, whose arguments and results are tensors",
    "give it a function of tensors, without chunks, or call it outside of the compiled function",
)
VARYING_NUMBER = _kind(
    "CAP247",
    "a number or a size that varies decides what an operation is",
    "the operation has no form that leaves it open, and there is a version for each of several values by now",
    "keep it constant, or compute with tensors what the operation does with it; pad sizes to a few lengths",
)
CONTROL_FLOW = _kind(
    "CAP248",
    "a branch or a loop of a form that a graph does not hold",
    "both branches, and every round, are parts of one graph: they take and return tensors of one form, of which only"
    " the sizes of row-major results may differ between branches, and the condition is one bool",
    "return tensors of one dtype and equally many dimensions from both branches, carry tensors, and raise outside",
)
DISPATCH_IN_PYTHON = _kind(
    "CAP249",
    "an operation on a tensor that dispatches in Python, of a kind that a graph does not hold",
    "what its __torch_dispatch__ does is captured below autograd and autocast, with tensors of a fixed form; where"
    " gradients are of its class, all that is differentiated has to start at tensors that exist before the graph",
    "give the graph the tensors that are trained, or turn gradients off (torch.no_grad()); keep autocast, random"
    " numbers and transforms of torch.func away from these tensors",
)
FUNCTION_REPLACED = _kind(
    "CAP254",
    "a builtin function, a special method of tensors or a function of torch's has been replaced",
    "torch and the standard library, which the compiler calls, compute with it too, or the compiler itself does",
    "put the name into the module that uses it, not into builtins or torch; make a subclass of torch.Tensor",
)
VARYING_ITERATION = _kind(
    "CAP255",
    "a function or a loop goes through now more and now fewer items",
    "each number of rounds is another graph; the call of the function, or the loop alone where the function does"
    " much more, is left to Python, and what comes after it has one graph for all",
    "compute outside what the function or the loop gives, and pass it; with fullgraph=True each number has a version",
)
COMMUNICATION = _kind(
    "CAP256",
    "other processes are spoken to in a way that is no operator of a graph",
    "a graph has the functional collectives, and those that write to plain, dense tensors without a history; each"
    " is called once, in the program's order",
    "use torch.distributed's collectives on tensors under no_grad, or the functional ones, which have gradients",
)
KEPT_TENSOR = _kind(
    "CAP257",
    "a function that is one node of the graph keeps a tensor",
    "a node is known by what it gives: it is run on tensors without data, and those that it kept would be of no use "
    "behind the trace",
    "return the tensor, or leave allow_in_graph out",
)

UNLISTED = KINDS[UNSUPPORTED]
