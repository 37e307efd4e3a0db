# How the .mlir tests run: each RUN line in a shell, with this build's programs and LLVM's FileCheck first in PATH.
import os
import lit.formats

config.name = "wengert"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs", "data", "programs"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PATH"] = os.pathsep.join([config.wengert_bin_dir, config.llvm_tools_dir, os.environ["PATH"]])
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "LD_LIBRARY_PATH", "WENGERT_CPU_LEVEL"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.substitutions.append(("%data", os.path.join(config.test_source_root, "data")))
config.substitutions.append(("%examples", os.path.join(config.wengert_source_dir, "examples")))
