"""Every task of the repository. ``nox -l`` lists them; ``nox -s demo`` and ``nox -s tests`` are the two to begin with.

torch is installed once, into an environment of its own that the others see through a ``.pth`` file, so that a new
environment costs seconds and no gigabytes. ``FXSTACK_TORCH`` names another requirement than the tested version.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import nox
from nox.command import CommandFailed

sys.path.insert(0, str(Path(__file__).parent / "tools"))
from bytecode_tests import interpreter
from workspace import PACKAGES, ROOT, TESTED, closure, fingerprint

os.environ.pop("PYTHONPATH", None)  # what is tested is what is installed

nox.needs_version = ">=2024.4.15"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
NEWER_PYTHONS = tuple(row.python for row in TESTED[1:])
TORCH = {row.python: os.environ.get("FXSTACK_TORCH", f"torch=={row.torch}") for row in TESTED}
BUILD_TOOLS = ("hatchling>=1.25", "editables>=0.5")
TEST_TOOLS = (
    "pytest>=8",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6,<4",
    "hypothesis>=6.135",
    "expecttest>=0.3",
    "sybil>=10,<11",
    "numpy",
    "cryptography>=40,<51",  # optional: signatures
    "aiohttp>=3.9,<4",  # optional: remote caches on web servers
)
TRITON_TOOLS = ("triton>=3.6,<3.7", "numpy<2.4")  # numpy 2.4 breaks the interpreter of Triton 3.6
TRITON_TESTS = "packages/inductor-codegen/tests/codegen/triton"
ECOSYSTEM = (  # what integration_tests/ecosystem runs; ranges that it has run with
    "transformers>=5.20,<6",
    "peft>=0.21,<0.22",
    "accelerate>=1.15,<2",
    "pytorch-lightning>=2.6,<3",
    "diffusers>=0.42,<0.43",
    "torch-geometric>=2.8,<3",
    "torchao>=0.18,<0.19",
    "sentence-transformers>=6.2,<7",
    "torchdiffeq>=0.2.5,<0.3",
    "einops>=0.8,<0.9",
    "torchmetrics>=1.9,<2",
    "kornia>=0.9,<0.10",
    "tensordict>=0.15,<0.16",
    "x-transformers>=2.31,<3",
    "vector-quantize-pytorch>=1.32,<2",
    "normflows>=1.7,<2",
)
RELEASE_TOOLS = ("towncrier>=24.8", "virtualenv>=20.26")
NOTEBOOK_TOOLS = ("nbclient>=0.10,<1", "nbformat>=5.10", "ipykernel>=6")
ADVERSARIES = "integration_tests/adversaries"
PROCESSES = str(min(os.cpu_count() or 1, 4))
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONDONTWRITEBYTECODE": "",  # else each of some hundred processes compiles the modules anew
}


def see_torch(session: nox.Session, version: str = THIS_PYTHON) -> None:
    """Make torch importable in the session's environment, installing it first if no session has yet."""
    shared = ROOT / ".nox" / f"torch-{version}"
    python = shared / "bin" / "python"
    stamp = shared / "installed"
    if not stamp.exists() or stamp.read_text() != TORCH[version]:
        session.log(f"installing {TORCH[version]} once, for every session")
        base = sys.executable if version == THIS_PYTHON else str(interpreter(version))
        session.run_install(
            sys.executable, "-m", "virtualenv", "--quiet", "--python", base, str(shared), external=True
        )
        session.run_install(str(python), "-m", "pip", "install", "--quiet", TORCH[version], external=True)
        stamp.write_text(TORCH[version])
    inside = f"lib/python{version}/site-packages"
    own = Path(session.virtualenv.location) / inside
    (own / "shared_torch.pth").write_text(f"{shared / inside}\n")


def install_stack(
    session: nox.Session, *extras: str, version: str = THIS_PYTHON, tools: tuple[str, ...] = TEST_TOOLS
) -> None:
    """All packages, editable, with what they need; skipped when nothing that matters has changed."""
    see_torch(session, version)
    wanted = fingerprint(extra=(TORCH[version], *BUILD_TOOLS, *tools, *extras))
    stamp = Path(session.virtualenv.location) / "stack-installed"
    if stamp.exists() and stamp.read_text() == wanted:
        session.log("the packages are installed as they are now; skipping")
        return
    session.install("--quiet", *BUILD_TOOLS, *tools, *extras)
    editable = [part for package in PACKAGES for part in ("--editable", str(package.folder))]
    session.install("--quiet", "--no-build-isolation", *editable)
    stamp.write_text(wanted)


@nox.session
def demo(session: nox.Session) -> None:
    """A first compiled program and a small model beside eager; `nox -s demo -- bert gpt2 resnet` for real ones."""
    models = ("transformers>=4.50,<6",) if set(session.posargs) - {"mlp"} else ()
    install_stack(session, *models, tools=())
    session.run("python", "-m", "benchmarks.demo", *session.posargs, env=ONE_THREAD)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests: torch-free layers on newer Pythons if there are any, Triton's, then packages, tools, integration."""
    with ThreadPoolExecutor(1) as beside:  # installing keeps one processor busy, and these need none of it
        newer = beside.submit(_bytecode, *NEWER_PYTHONS)
        install_stack(session, "transformers>=4.50,<6", "import-linter>=2.1", *RELEASE_TOOLS)
    print(newer.result().stdout, flush=True)
    failed = ["the torch-free tests on newer Pythons"] if newer.result().returncode else []
    failed += [] if _passes(partial(_triton, session)) else ["the tests of the Triton kernels"]
    arguments = session.posargs or ["-q"]
    everything_else = (
        "--timeout=600",
        "-n",
        PROCESSES,
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        "--hypothesis-profile=ci",  # the same examples each time, and no limit of time for one of them
        f"--ignore={TRITON_TESTS}",
        "-m",
        "not nightly",
    )
    session.run("python", "-m", "pytest", *everything_else, *arguments, env=ONE_THREAD)
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def _passes(run: Callable[[], None]) -> bool:
    try:
        run()
    except CommandFailed:
        return False
    return True


def _bytecode(*versions: str) -> subprocess.CompletedProcess[str]:
    """The torch-free tests on other versions, with what they print; each has an environment of its own."""
    command = [sys.executable, "tools/bytecode_tests.py", *versions]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _triton(session: nox.Session) -> None:
    """In a process of their own: Triton's interpreter is chosen by the environment before Triton is imported."""
    folder = Path(session.virtualenv.location) / "triton"
    if not folder.exists():
        session.install("--quiet", "--no-deps", "--target", str(folder), *TRITON_TOOLS)
    seen = {"PYTHONPATH": str(folder), "TRITON_INTERPRET": "1"}
    session.run(
        "python", "-m", "pytest", "-q", "--timeout=300", "-n", PROCESSES, TRITON_TESTS, env=ONE_THREAD | seen
    )


@nox.session
def bench(session: nox.Session) -> None:
    """Compare eager, stock torch.compile and fxstack; writes a table and a JSON file to bench-results/."""
    install_stack(session, "transformers>=4.50,<6")
    session.run("python", "-m", "benchmarks", *session.posargs, env=ONE_THREAD)


@nox.session(name="bench-memory")
def bench_memory(session: nox.Session) -> None:
    """Compare the peak memory of a training step under eager, stock torch.compile and fxstack."""
    install_stack(session, "transformers>=4.50,<6")
    session.run("python", "-m", "benchmarks.memory", *session.posargs, env=ONE_THREAD)


@nox.session(name="bench-operators")
def bench_operators(session: nox.Session) -> None:
    """Compare operators one by one with eager and list the slower ones: `nox -s bench-operators -- pad`."""
    install_stack(session)
    session.run("python", "-m", "benchmarks.operators", *session.posargs, env=ONE_THREAD)


@nox.session(name="bench-programs")
def bench_programs(session: nox.Session) -> None:
    """Compare small programs with eager and stock (an hour): `nox -s bench-programs -- softmax`."""
    install_stack(session)
    session.run("python", "-m", "benchmarks.programs", *session.posargs, env=ONE_THREAD)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random programs, new ones in every run: `nox -s fuzz -- 10` runs ten times as many as the tests do."""
    install_stack(session)
    times = int(session.posargs[0]) if session.posargs else 10
    seed = str(random.randrange(1 << 30))
    count = str(times * 1000)
    older = {"RANDOM_PROGRAMS": count, "DYNAMO_CAPTURE_FUZZ": count, "DYNAMO_CAPTURE_FUZZ_SEED": seed}
    jobs = str(os.cpu_count() or 1)
    drawn = {"ADVERSARY_TIMES": str(times), "ADVERSARY_SEED": seed, "ADVERSARY_JOBS": jobs}
    folders = (
        ADVERSARIES,
        "packages/aot-autograd/tests/test_random_programs.py",
        "packages/dynamo-capture/tests/fuzz",
    )
    session.log(f"seed {seed}")
    failed = [
        folder
        for folder in folders
        if not _passes(partial(_fuzz_tests, session, folder, ONE_THREAD | older | drawn))
    ]
    if failed:
        session.error(f"failed: {', '.join(failed)}")


@nox.session
def examples(session: nox.Session) -> None:
    """Every program and notebook of examples/; the tests run four of them."""
    install_stack(session, *NOTEBOOK_TOOLS)
    environment = ONE_THREAD | {"ALL_EXAMPLES": "1"}
    session.run("python", "-m", "pytest", "-q", "integration_tests/test_examples.py", env=environment)


@nox.session
def minify(session: nox.Session) -> None:
    """Planted miscompilations, crashes and hangs, each brought to a few lines."""
    install_stack(session)
    folder = "packages/fxstack/tests/minify"
    session.run("python", "-m", "pytest", "-q", "-s", "--timeout=0", folder, env=ONE_THREAD)


@nox.session
def nightly(session: nox.Session) -> None:
    """The tests that `nox -s tests` leaves out, since each takes long for what it tells; not those of `minify`."""
    install_stack(session, "transformers>=4.50,<6")
    others = ("--ignore=packages/fxstack/tests/minify", *session.posargs)
    session.run("python", "-m", "pytest", "-q", "--timeout=600", "-m", "nightly", *others, env=ONE_THREAD)


@nox.session
def damage(session: nox.Session) -> None:
    """1,000 random changes each of artifacts, exported caches and cache entries: refused, or what was written."""
    install_stack(session)
    environment = ONE_THREAD | {"FXSTACK_ALL_CHANGES": "1"}
    folders = ("packages/artifact-loader", "packages/fxstack/tests/artifacts", "packages/fxstack/tests/cache")
    chosen = ("-k", "chang or whatever_is_in_the_cache", *session.posargs)
    session.run("python", "-m", "pytest", "-q", "--timeout=0", *folders, *chosen, env=environment)


@nox.session
def soak(session: nox.Session) -> None:
    """Compiles and drops 10,000 functions on 8 threads; fails if memory grows. `-- --functions 1000` for fewer."""
    install_stack(session)
    session.run("python", "integration_tests/sweeps/soak.py", *session.posargs, env=ONE_THREAD)


def _fuzz_tests(session: nox.Session, folder: str, environment: dict[str, str]) -> None:
    session.run("python", "-m", "pytest", "-q", "-s", "--timeout=0", folder, env=environment)


@nox.session(name="coverage-ops")
def coverage_ops(session: nox.Session) -> None:
    """Torch's operator database through autograd and decompositions: wrong results, exceptions, coverage."""
    install_stack(session)
    jobs = ("--jobs", str(os.cpu_count() or 1), "--at-least", "99")
    session.run(
        "python", "-m", "operator_sweep", *jobs, *session.posargs, env=ONE_THREAD | {"PYTHONPATH": "tools"}
    )


@nox.session(name="shape-rules")
def shape_rules(session: nox.Session) -> None:
    """Every shape rule against eager, in several layouts and with symbolic sizes; what each costs."""
    install_stack(session)
    arguments = session.posargs or ["--layouts"]
    session.run("python", "tools/shape_rules.py", *arguments, env=ONE_THREAD | {"PYTHONPATH": "tools"})


@nox.session(name="sweep-architectures")
def sweep_architectures(session: nox.Session) -> None:
    """Capture tiny models of the architectures in transformers; compare with eager and stock's capture."""
    install_stack(session, "transformers>=4.50,<6")
    arguments = session.posargs or ["--every", "4", "--stock"]
    session.run("python", "integration_tests/sweeps/architectures.py", *arguments, env=ONE_THREAD)


@nox.session(name="sweep-training")
def sweep_training(session: nox.Session) -> None:
    """Train tiny models of the architectures in transformers, compiled and in eager, against float64."""
    install_stack(session, "transformers>=4.50,<6")
    jobs = ("--jobs", str(os.cpu_count() or 1))
    sweep = ("integration_tests/sweeps/architectures.py", "--train", *jobs)
    session.run("python", *sweep, *session.posargs, env=ONE_THREAD)


@nox.session(name="sweep-modules")
def sweep_modules(session: nox.Session) -> None:
    """Compile every module of torch's module database, in training and evaluation; compare with eager."""
    install_stack(session)
    jobs = ("--jobs", str(os.cpu_count() or 1))
    session.run("python", "integration_tests/sweeps/modules.py", *jobs, *session.posargs, env=ONE_THREAD)


@nox.session(name="sweep-python")
def sweep_python(session: nox.Session) -> None:
    """CPython's own tests, or files of unittest, each method captured: `nox -s sweep-python -- test_list`."""
    install_stack(session)
    session.run("python", "integration_tests/sweeps/python_library.py", *session.posargs, env=ONE_THREAD)


@nox.session
def dashboard(session: nox.Session) -> None:
    """Measure all suites that are installed under stock and fxstack, and write the site: hours; a night's work.

    `nox -s dashboard -- --suite tiny` measures less. Results are added to bench-results/dashboard.db, pages are written
    to bench-results/dashboard; the session fails if anything became worse than in the runs before.
    """
    install_stack(session, "transformers>=4.50,<6", "timm>=1.0,<2", _torchvision(TORCH[THIS_PYTHON]))
    database = ("--database", "bench-results/dashboard.db")
    asked = session.posargs or [
        part for suite in ("tiny", "transformers", "timm", "torchvision") for part in ("--suite", suite)
    ]
    measured = ("fxstack", "dashboard", "run", "--skip-missing", *database, *asked)
    session.run(*measured, env=ONE_THREAD, success_codes=[0, 1])  # rows that fail are results too
    session.run("fxstack", "dashboard", "site", *database, "--output", "bench-results/dashboard")
    session.run("fxstack", "dashboard", "check", *database)


def _torchvision(torch: str) -> str:
    """The requirement of the torchvision that belongs to a requirement of torch: another one brings its own torch."""
    exact = re.fullmatch(r"torch==2\.(\d+)\..*", torch)
    return f"torchvision==0.{int(exact[1]) + 15}.*" if exact else "torchvision>=0.26"


@nox.session
def browser(session: nox.Session) -> None:
    """The report and the dashboard's pages in a real browser: one that is installed (Chromium or Chrome) is used."""
    install_stack(session, "playwright>=1.40,<2")
    session.run(
        "python",
        "-m",
        "pytest",
        "packages/fxstack/tests/observing/test_page.py",
        "packages/fxstack-dashboard/tests/pages/test_browser.py",
        *session.posargs,
        env=ONE_THREAD,
    )


@nox.session
def ecosystem(session: nox.Session) -> None:
    """Programs of real libraries, compiled, beside eager and stock: `nox -s ecosystem -- peft_lora --no-times`."""
    install_stack(session, *ECOSYSTEM)
    session.run("python", "integration_tests/ecosystem/run.py", *session.posargs, env=ONE_THREAD)


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict over every package, the benchmarks and the tools."""
    install_stack(session, "transformers>=4.50,<6")
    session.install("--quiet", "mypy>=1.13")
    for package in PACKAGES:
        session.run("mypy", str(package.folder / "src"))
    session.run("mypy", "benchmarks")
    session.run("mypy", "tools", env={"MYPYPATH": "tools"})


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, the arrows between the packages, forbidden imports, and generated pages that are out of date."""
    session.install("--quiet", "ruff>=0.11", "import-linter>=2.1")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", "tools/import_arrows.py", "--check")
    session.run("python", "tools/import_circles.py", "--check")
    session.run("python", "tools/source_sizes.py", "--check")
    session.run("python", "tools/forbidden_imports.py", "--check")
    session.run("python", "tools/forbidden_names.py", "--check")
    session.run("python", "tools/compatibility_table.py", "--check")
    session.run("python", "tools/graph_breaks_page.py", "--check")
    session.run("python", "tools/errors_page.py", "--check")
    session.run("python", "tools/torch_compile_page.py", "--check")
    session.run("python", "tools/release.py", "check")


@nox.session(name="first-imports")
def first_imports(session: nox.Session) -> None:
    """Each module of the packages imported first, in a process of its own; some five minutes of one core."""
    install_stack(session)
    session.run("python", "tools/first_imports.py", *session.posargs, env=ONE_THREAD)


@nox.session
def build(session: nox.Session) -> None:
    """A wheel of each package in dist/, in an environment without torch."""
    session.install("--quiet", "build>=1.2", *BUILD_TOOLS)
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.run("python", "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is not None)")
    for package in PACKAGES:
        session.run(
            "python", "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", str(package.folder)
        )
    session.run("python", "tools/check_wheels.py", "dist")


@nox.session(name="release-check")
def release_check(session: nox.Session) -> None:
    """All sdists and wheels: built, checked, installed alone and together, tried (docs/releasing.md)."""
    session.install("--quiet", "build>=1.2", "twine>=6", *RELEASE_TOOLS, *BUILD_TOOLS)
    session.run("python", "-m", "release_check", *session.posargs, env={"PYTHONPATH": "tools"})


@nox.session
def release(session: nox.Session) -> None:
    """Versions and changelogs from change files: `nox -s release -- plan` shows them, `-- make` writes them."""
    session.install("--quiet", *RELEASE_TOOLS)
    session.run("python", "tools/release.py", *(session.posargs or ["plan"]))


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as a site that can be searched, build/site: pages and the reference of public names."""
    session.install("zensical>=0.0.73,<0.1")
    session.run("python", "tools/check_links.py")
    session.run("python", "tools/site_pages.py", "build/site-pages")
    session.run("python", "tools/reference_pages.py", "build/site-pages/reference")
    session.run("zensical", "build", "--strict", "--clean", "-f", "mkdocs.yml")


def _test_alone(session: nox.Session, name: str) -> None:
    see_torch(session)
    session.install("--quiet", *BUILD_TOOLS)
    folders = closure(name)
    extra = ["--no-build-isolation", *(f"{package.folder}" for package in folders if package.name != name)]
    (own,) = (package for package in folders if package.name == name)
    session.install("--quiet", *extra, f"{own.folder}[test]", "pytest-timeout>=2.3")
    session.run("python", "-m", "pip", "check")
    session.run("python", "tools/only_declared.py", name)
    arguments = session.posargs or ["-q"]
    session.run(
        "python", "-m", "pytest", "--timeout=600", str(own.folder / "tests"), *arguments, env=ONE_THREAD
    )


for _package in PACKAGES:

    @nox.session(name=f"tests-{_package.name}")
    def _tests_alone(session: nox.Session, name: str = _package.name) -> None:
        """The tests of one package, in an environment with only what it declares."""
        _test_alone(session, name)


@nox.session(name="tests-triton")
def tests_triton(session: nox.Session) -> None:
    """The same loop IR as Triton kernels: in Triton's interpreter on CPU tensors, and compiled to PTX for cuda:90."""
    install_stack(session)
    _triton(session)


for _version in NEWER_PYTHONS:

    @nox.session(name=f"tests-bytecode-{_version}", venv_backend="none")
    def _tests_bytecode(session: nox.Session, version: str = _version) -> None:
        """The layers that need no torch (bytecode, assembler, frame hook) on another Python, if there is one."""
        session.run(sys.executable, "tools/bytecode_tests.py", version, *session.posargs)


for _version in NEWER_PYTHONS:
    _python = interpreter(_version)

    @nox.session(name=f"tests-python-{_version}", python=str(_python) if _python else _version)
    def _tests_python(session: nox.Session, version: str = _version) -> None:
        """All tests but Triton's on another Python, with the version of torch that tools/tested.toml names for it."""
        install_stack(session, "transformers>=4.50,<6", "import-linter>=2.1", version=version)
        arguments = session.posargs or ["-q"]
        session.run(
            "python", "-m", "pytest", "--timeout=600", f"--ignore={TRITON_TESTS}", *arguments, env=ONE_THREAD
        )
