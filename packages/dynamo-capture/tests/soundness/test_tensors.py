"""Changes to tensors and to torch's own state: metadata, modes, defaults."""

from __future__ import annotations

STATES = {
    "what autograd knows of an argument": (
        """
        t = torch.ones(3, requires_grad=True) * 2
        def args(): return (t,)
        def f(x): return x * 2, x.is_leaf, x.grad_fn is None or len(x._backward_hooks or ()), x.retains_grad
        """,
        [
            "t = torch.ones(3, requires_grad=True)",
            "t.retain_grad()",
        ],
        ["t = t * 1"],
    ),
    "where an argument lies": (
        """
        t = torch.arange(6.0)[:3]
        def args(): return (t,)
        def f(x): return x * 2, x.storage_offset(), x._is_view(), x.is_shared()
        """,
        ["t = torch.ones(3)", "t = torch.ones(3)[:].share_memory_()"],
        ["t = torch.ones(9)[:3]"],
    ),
    "an object in the place of a module": (
        """
        import sys, types
        sys.modules["soundness_part"] = types.SimpleNamespace(k=1)
        def restore(): del sys.modules["soundness_part"]
        def f(x):
            import soundness_part
            from soundness_part import k
            return x * k + soundness_part.k
        """,
        ["sys.modules['soundness_part'] = types.SimpleNamespace(k=2)", "sys.modules['soundness_part'].k = 3"],
        ["sys.modules['soundness_part'].j = 3"],
    ),
    "a tensor argument": (
        """
        t = torch.arange(6.0).reshape(2, 3)
        def args(): return (t,)
        def f(x): return x.sum(0) * x.shape[0] + x.stride(0)
        """,
        [
            "t = torch.arange(8.0).reshape(2, 4)",
            "t = torch.arange(6.0).reshape(3, 2)",
            "t = t.double()",
            "t = t.long()",
            "t = t.half()",
            "t = t.to('meta')",
            "t = t.requires_grad_()",
            "t = t.t().contiguous().t()",
            "t = t[None]",
            "t = torch.zeros(0, 3)",
            "t = nn.Parameter(t)",
            "t.data = torch.ones(4, 3)",
            "t.resize_(3, 3).zero_()",
            "t.set_(torch.ones(5, 3))",
            "t.transpose_(0, 1)",
            "t.unsqueeze_(0)",
            "t = t.expand(2, 2, 3)",
            "t = torch.ones(1, 3)",
            "t = 5",
            "t = t.to_sparse()",
            "t = torch.complex(t, t)",
        ],
        [
            "t = t + 1",
            "t.add_(1)",
            "t = torch.zeros(2, 3)",
            "t.note = 1",
            "t = torch.ones(9, 3)[4:6]",
            "t = torch.ones(12)[1:7].view(2, 3)",
        ],
    ),
    "a conjugated argument": (
        """
        t = torch.complex(torch.ones(3), torch.ones(3))
        def args(): return (t,)
        def f(x): return x * 2, x.is_conj()
        """,
        ["t = t.conj()", "t = t.real", "t = (t * 1j).conj()"],
        ["t = t.conj().resolve_conj()"],
    ),
    "a tensor with a type of its own": (
        """
        t = torch.arange(4.0)
        class Sub(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs or {})
        def args(): return (t,)
        def f(x): return (x * 2).sum() + (1 if type(x) is torch.Tensor else 0)
        """,
        ["t = t.as_subclass(Sub)", "t = nn.Parameter(t)"],
        ["t = t * 3"],
    ),
    "tensors that share memory": (
        """
        base = torch.arange(8.0)
        a, b = base[:4].clone(), base[4:].clone()
        def args():
            memo = {}
            return tuple(memo.setdefault(id(t), t.clone()) for t in (a, b))
        def f(x, y):
            x.add_(1)
            return x * y
        """,
        ["b = a", "a = b"],
        ["a = a.clone()", "b = base[4:].clone()"],
    ),
    "a global tensor": (
        """
        w = torch.ones(4)
        def f(x): return x * w
        """,
        [
            "w = torch.zeros(4)",
            "w.zero_()",
            "w = torch.ones(1, 4)",
            "w.data = torch.ones(4).double()",
            "w.requires_grad_()",
            "w = 3.0",
            "w.resize_(1).fill_(2)",
            "w = torch.ones(4, device='meta')",
            "w = nn.Parameter(w)",
            "w.set_(torch.full((4,), 5.0))",
        ],
        ["w = torch.ones(4)", "w.note = 1", "w.grad = torch.ones(4)"],
    ),
    "python attributes of tensors": (
        """
        w = torch.ones(4)
        w.k = 2
        def f(x): return x * w * w.k
        """,
        ["w.k = 3", "del w.k", "w = torch.ones(4)", "v = torch.ones(4); v.k = 7; w = v"],
        ["w.z = 1", "w.k = int('2')"],
    ),
    "gradient mode": (
        """
        w = torch.ones(4, requires_grad=True)
        def f(x): return x * w
        """,
        ["torch.set_grad_enabled(False)", "w.requires_grad_(False)", "w = w.detach()"],
        ["torch.set_grad_enabled(True)", "w.grad = torch.ones(4)"],
    ),
    "default dtype": (
        """
        def f(x): return torch.ones(4) * 2 + x.sum()
        """,
        ["torch.set_default_dtype(torch.float64)", "torch.set_default_device('meta')"],
        ["torch.set_default_dtype(torch.float32)"],
    ),
    "autocast": (
        """
        w = torch.ones(4, 4)
        def args(): return (torch.ones(4, 4),)
        def f(x): return x @ w
        """,
        [
            "torch.set_autocast_enabled('cpu', True)",
            "torch.set_autocast_dtype('cpu', torch.float16); torch.set_autocast_enabled('cpu', True)",
        ],
        ["torch.set_autocast_enabled('cpu', False)"],
    ),
    "torch's flags": (
        """
        def f(x): return torch.sin(x)
        """,
        [
            "torch.use_deterministic_algorithms(True)  # silent",
            "torch.backends.cudnn.benchmark = True  # silent",
            "torch.backends.cudnn.deterministic = True  # silent",
            "torch.backends.cudnn.enabled = False  # silent",
            "torch.set_num_threads(torch.get_num_threads() + 1)  # silent",
        ],
        ["torch.manual_seed(3)", "torch.use_deterministic_algorithms(False)"],
    ),
    "questions about modes": (
        """
        def f(x):
            x = x + (1 if torch.is_grad_enabled() else 2)
            return x + (10 if torch.are_deterministic_algorithms_enabled() else 20)
        """,
        ["torch.set_grad_enabled(False)", "torch.use_deterministic_algorithms(True)"],
        ["torch.manual_seed(1)"],
    ),
    "sizes in Python": (
        """
        t = torch.zeros(3, 5)
        def args(): return torch.arange(4.0), t
        def f(x, t): return x * t.shape[0] + t.numel() + t.dim() + len(t) + (100 if t.is_contiguous() else 200)
        """,
        [
            "t = torch.zeros(4, 5)",
            "t = torch.zeros(3, 5, 1)",
            "t = torch.zeros(5, 3).t()",
            "t = torch.zeros(3)",
        ],
        ["t = torch.ones(3, 5)"],
    ),
    "properties of tensors in Python": (
        """
        t = torch.zeros(3)
        def args(): return torch.arange(4.0), t
        def f(x, t):
            k = 1 if t.requires_grad else 2
            k += 10 if t.is_leaf else 20
            k += 100 if t.dtype is torch.float32 else 200
            k += 1000 if t.device.type == "cpu" else 2000
            k += 10000 if isinstance(t, nn.Parameter) else 20000
            k += 100000 if t.grad is None else 200000
            return x * k
        """,
        [
            "t.requires_grad_()",
            "t = torch.zeros(3, requires_grad=True) * 2",
            "t = t.double()",
            "t = t.to('meta')",
            "t = nn.Parameter(t)",
            "t.requires_grad_().sum().backward()",
            "t.grad = torch.ones(3)",
        ],
        ["t = torch.ones(3)"],
    ),
}


def test_a_change_is_noticed(change):
    change.must_be_noticed()


def test_what_was_not_read_does_not_matter(other):
    other.must_not_matter()
