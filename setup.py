"""One extension per ``pyx/*.pyx``; everything else about the package is in ``pyproject.toml``."""

import os
import subprocess
import tempfile
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Identical models on every machine need plain IEEE arithmetic: no contraction into fused operations.
# That nobody looks at errno or at floating-point exceptions lets more loops be vectorised.
# Integers wrap: Python's own flags say so, but those of the environment may take their place.
EXACT = ["-O3", "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]

# Python's own flags ask for debug information, which is four fifths of what is installed, and takes a
# fifth of the time to compile. CFLAGS=-g keeps it.
DEBUG = [] if "-g" in os.environ.get("CFLAGS", "").split() else ["-g0"]


def openmp_flags():
    """The flags that make the compiler understand OpenMP, or none (a working serial build)."""
    compiler = os.environ.get("CC", "cc").split()
    source = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
    for flags in ["-fopenmp"], ["-Xpreprocessor", "-fopenmp"]:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "probe.c")
            program.write_text(source)
            command = [*compiler, *flags, str(program), "-o", str(Path(folder, "probe"))]
            try:
                if subprocess.run(command, capture_output=True, cwd=folder).returncode == 0:
                    return flags
            except OSError:
                break
    return []


class BuildTogether(build_ext):
    """Compiles as many extensions at the same time as there are processors."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()


if __name__ == "__main__":  # which processes of cythonize may import
    # Cython does not look whether what a module declares of its own classes has changed.
    declared = max(path.stat().st_mtime for path in Path("pyx").rglob("*.pxd"))
    outdated = any(path.stat().st_mtime < declared for path in Path("build/cython").rglob("*.c"))
    openmp = openmp_flags()
    extensions = [
        Extension(
            f"ranktrees._core.{source.stem}",
            [str(source)],
            include_dirs=["pyx", numpy.get_include()],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
            extra_compile_args=[*EXACT, *DEBUG, *openmp],
            extra_link_args=openmp,
            libraries=["m"] if os.name == "posix" else [],
            depends=[
                str(header) for pattern in ("*.pxd", "*.h") for header in sorted(Path("pyx").rglob(pattern))
            ],
        )
        for source in sorted(Path("pyx").glob("*.pyx"))
    ]
    setup(
        cmdclass={"build_ext": BuildTogether},
        ext_modules=cythonize(
            extensions,
            include_path=["pyx"],
            build_dir="build/cython",
            nthreads=os.cpu_count(),
            force=outdated,
            compiler_directives={
                "language_level": 3,
                "boundscheck": False,
                "wraparound": False,
                "cdivision": True,
                "initializedcheck": False,
                "embedsignature": True,
                "freethreading_compatible": True,
            },
        ),
    )
