"""One extension per ``pyx/**/*.pyx``; everything else about the package is in ``pyproject.toml``.

    RANKTREES_DEBUG=1                       bounds are checked, debuggers see everything; slow
    RANKTREES_SANITIZE=address,undefined    the sanitizers of the compiler watch as well
    RANKTREES_LIBOMP=FOLDER                 LLVM's OpenMP (``include``, ``lib``) for compilers that have none

Each of the first two has its own folder in ``build/``, so that none takes what another one has made.

On Windows, the compiler is Clang as Zig brings it, unless ``CC`` names another one. Microsoft's has no vector
types, and GCC takes the stack to be aligned for wide registers, which it is not there.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, "pyx")

from readme import with_addresses
from uses import used_by

PYX = Path("pyx")
CORE = PYX / "ranktrees" / "_core"
SHARED = "ranktrees._core._cython"  # what Cython would put into every extension: views of memory

IS_DEBUG = os.environ.get("RANKTREES_DEBUG", "0") not in ("", "0")
SANITIZERS = os.environ.get("RANKTREES_SANITIZE", "")

# Identical models on every machine need plain IEEE arithmetic: no contraction into fused operations.
# That nobody looks at errno or at floating-point exceptions lets more loops be vectorised.
# Integers wrap: Python's own flags say so, but those of the environment may take their place.
EXACT = ["-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]

# Python's own flags ask for debug information, which is four fifths of what is installed, and takes a
# fifth of the time to compile. CFLAGS=-g keeps it.
PLAIN = ["-O3", *([] if "-g" in os.environ.get("CFLAGS", "").split() else ["-g0"])]
DEBUG = ["-O1", "-g", "-fno-omit-frame-pointer"]
WATCHED = [f"-fsanitize={SANITIZERS}"] if SANITIZERS else []
KIND = [*["debug"] * IS_DEBUG, *SANITIZERS.split(",") * bool(SANITIZERS)]
BUILD = f"build/{'-'.join(KIND)}" if KIND else "build"

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": IS_DEBUG,
    "wraparound": False,
    "initializedcheck": IS_DEBUG,
    "cdivision": True,
    "embedsignature": True,
    "freethreading_compatible": True,
}


IS_WINDOWS = os.name == "nt"
if IS_WINDOWS:
    python = Path(sys.executable).as_posix()
    os.environ.setdefault("CC", f'"{python}" -m ziglang cc -target x86_64-windows-gnu')


def openmp_flags():
    """The flags to compile and to link with OpenMP, or none of either (a working serial build)."""
    include, link = [], []
    if library := os.environ.get("RANKTREES_LIBOMP"):
        folder = Path(library).absolute()
        include = [f"-I{(folder / 'include').as_posix()}"]
        suffix = {"darwin": "dylib", "win32": "lib"}.get(sys.platform, "so")
        link = [(folder / "lib" / f"libomp.{suffix}").as_posix()]
        if not IS_WINDOWS:
            link += [f"-Wl,-rpath,{folder / 'lib'}"]
    source = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
    for flags in ["-fopenmp"], ["-Xpreprocessor", "-fopenmp"]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "probe.c").write_text(source)
            compiler = shlex.split(os.environ.get("CC", "cc"))
            command = [*compiler, *flags, *include, "probe.c", *(link or flags), "-o", "probe"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
            except OSError:
                break
        if done.returncode == 0:
            return [*flags, *include], link or flags
    if library:
        sys.exit(f"RANKTREES_LIBOMP={library}: expected LLVM's OpenMP, but this fails: {shlex.join(command)}")
    return [], []


class BuildTogether(build_ext):
    """Compiles as many extensions at a time as there are processors, and leaves no file of older sources."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self):
        super().run()
        if not (self.inplace or self.editable_mode):
            outputs = self.get_finalized_command("build_py").get_outputs() + self.get_outputs()
            for path in {*Path(self.build_lib).rglob("*.*")} - {*map(Path, outputs)}:
                path.unlink()


def name_of(source):
    return ".".join(source.relative_to(PYX).with_suffix("").parts)


def extension(name, source, depends=()):
    flags = [*(DEBUG if IS_DEBUG or SANITIZERS else PLAIN), *EXACT, *WATCHED]
    return Extension(
        name,
        [str(source)],
        include_dirs=[str(CORE)],
        extra_compile_args=[*flags, *OPENMP[0]],
        extra_link_args=[*WATCHED, *OPENMP[1]],
        libraries=["m"] if os.name == "posix" else [],
        depends=list(depends),
    )


def cythonized(extensions, **options):
    return cythonize(
        extensions,
        include_path=[str(PYX), str(CORE)],
        build_dir=f"{BUILD}/cython",
        nthreads=os.cpu_count(),
        compiler_directives=DIRECTIVES,
        **options,
    )


if __name__ == "__main__":  # which processes of cythonize may import
    OPENMP = openmp_flags()
    kernels = {
        name_of(source): extension(name_of(source), source, used_by(source))
        for source in sorted(CORE.rglob("*.pyx"))
    }
    # It makes arrays of C pointers, which Cython 3.3 cannot share.
    by_itself = kernels.pop("ranktrees._core.support.dtypes")
    shared = extension(SHARED, CORE / "_cython.c")
    urls = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    setup(
        long_description=with_addresses(Path("README.md").read_text(encoding="utf-8"), urls),
        long_description_content_type="text/markdown",
        cmdclass={"build_ext": BuildTogether},
        options={"build": {"build_base": BUILD}, "build_ext": {"compiler": "mingw32"} if IS_WINDOWS else {}},
        ext_modules=[
            *cythonized([by_itself]),
            *cythonized([shared, *kernels.values()], shared_utility_qualified_name=SHARED),
        ],
    )
