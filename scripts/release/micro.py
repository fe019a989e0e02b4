#!/usr/bin/env python3
"""Lays out the sources that a project for Cortex-M adds.

    micro.py FOLDER

The list of sources comes from two builds that CMake configures for a Cortex-M4: with the verifier, and sealed, without it.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("runtime/",)
FLAGS = "-std=c++20 -fno-exceptions -fno-rtti -fno-threadsafe-statics -ffunction-sections -fdata-sections -ffp-contract=off"

CMAKE = """# Sinter for a microcontroller as the target `sinter`. Before it is included, include what `sinter embed` wrote (net.cmake): its lists
# say which operations and element types are compiled. SINTER_SEALED leaves the verifier out.
include("${{CMAKE_CURRENT_LIST_DIR}}/sources.cmake")
list(TRANSFORM SINTER_MICRO_SOURCES PREPEND "${{CMAKE_CURRENT_LIST_DIR}}/")
if(SINTER_OPERATIONS)
  # Without the sources whose kernels are all unlisted.
  list(TRANSFORM SINTER_OPERATIONS REPLACE "(.+)" "k\\\\1Kernel" OUTPUT_VARIABLE listed)
  list(JOIN listed "|" listed)
  foreach(source IN LISTS SINTER_MICRO_SOURCES)
    file(STRINGS "${{source}}" kernels REGEX "^const Kernel k")
    if(kernels AND NOT kernels MATCHES "const Kernel (${{listed}}) ")
      list(REMOVE_ITEM SINTER_MICRO_SOURCES "${{source}}")
    endif()
  endforeach()
endif()
list(TRANSFORM SINTER_MICRO_VERIFIER PREPEND "${{CMAKE_CURRENT_LIST_DIR}}/")
add_library(sinter STATIC ${{SINTER_MICRO_SOURCES}})
target_include_directories(sinter PUBLIC "${{CMAKE_CURRENT_LIST_DIR}}" "${{CMAKE_CURRENT_LIST_DIR}}/runtime/include")
target_include_directories(sinter SYSTEM PRIVATE "${{CMAKE_CURRENT_LIST_DIR}}/third_party")
target_compile_features(sinter PUBLIC cxx_std_20)
separate_arguments(sinter_flags UNIX_COMMAND "{flags}")
list(REMOVE_ITEM sinter_flags -std=c++20)
target_compile_options(sinter PRIVATE ${{sinter_flags}} -Wno-unused-function)
foreach(list SINTER_OPERATIONS SINTER_ELEMENT_TYPES)
  if(${{list}})
    list(REMOVE_DUPLICATES ${{list}})
    list(SORT ${{list}})
    list(JOIN ${{list}} " " words)
    target_compile_definitions(sinter PRIVATE "${{list}}=\\"${{words}}\\"")
  endif()
endforeach()
if(SINTER_SEALED)
  target_compile_definitions(sinter PUBLIC SINTER_SEALED)
else()
  target_sources(sinter PRIVATE ${{SINTER_MICRO_VERIFIER}})
endif()
"""

MAKE = """# Sinter for a microcontroller, for make. Set SINTER_DIR to this folder and SINTER_EMBEDDED to what `sinter embed` wrote, without the
# suffix; then include this file. SINTER_SEALED=1 leaves the verifier out. It sets
#   SINTER_SOURCES   the C++ sources to compile, those of the model among them
#   SINTER_CXXFLAGS  the flags to compile them with, beside those of the processor
#   SINTER_INCLUDES  the flags for sources that use Sinter
include $(SINTER_DIR)/sources.mk
sinter_list = $(sort $(shell sed -n 's/^list(APPEND $(1) \\(.*\\))$$/\\1/p' $(addsuffix .cmake,$(SINTER_EMBEDDED))))
# Without the sources whose kernels are all unlisted.
sinter_operations := $(call sinter_list,SINTER_OPERATIONS)
sinter_kernels := $(filter runtime/kernels/%,$(SINTER_MICRO_SOURCES))
sinter_unlisted := $(shell cd $(SINTER_DIR) && for s in $(sinter_kernels); do if grep -q '^const Kernel k' $$s && ! grep -Eq 'const Kernel k($(subst $(eval ) ,|,$(sinter_operations)))Kernel ' $$s; then echo $$s; fi; done)
SINTER_SOURCES := $(addprefix $(SINTER_DIR)/,$(filter-out $(sinter_unlisted),$(SINTER_MICRO_SOURCES))) $(addsuffix _kernels.cc,$(SINTER_EMBEDDED))
SINTER_INCLUDES := -I$(SINTER_DIR) -I$(SINTER_DIR)/runtime/include
ifeq ($(SINTER_SEALED),)
SINTER_SOURCES += $(addprefix $(SINTER_DIR)/,$(SINTER_MICRO_VERIFIER))
else
SINTER_INCLUDES += -DSINTER_SEALED
endif
SINTER_CXXFLAGS := {flags} -Wno-unused-function $(SINTER_INCLUDES) -isystem $(SINTER_DIR)/third_party \\
  '-DSINTER_OPERATIONS="$(sinter_operations)"' '-DSINTER_ELEMENT_TYPES="$(call sinter_list,SINTER_ELEMENT_TYPES)"'
"""

ZEPHYR_MODULE = """name: sinter
build:
  cmake: zephyr
  kconfig: zephyr/Kconfig
"""
ZEPHYR_KCONFIG = """config SINTER
\tbool "Sinter, which runs .sinter models"
\tdepends on CPP && REQUIRES_FULL_LIBCPP
\thelp
\t  Builds the runtime and its reference kernels. SINTER_EMBEDDED names the lists of a model.

config SINTER_EMBEDDED
\tstring "What `sinter embed` wrote, as an absolute path without the suffix"
\tdepends on SINTER
"""
ZEPHYR_CMAKE = """if(CONFIG_SINTER)
  if(NOT CONFIG_SINTER_EMBEDDED STREQUAL "")
    include("${CONFIG_SINTER_EMBEDDED}.cmake")
  endif()
  include("${CMAKE_CURRENT_LIST_DIR}/../sinter.cmake")
  target_link_libraries(sinter PRIVATE zephyr_interface)
  zephyr_link_libraries(sinter)
endif()
"""


def sources_of(folder, *options):
    """The runtime's sources in a build with these options, relative to the tree, and the folder of the libraries' headers."""
    subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "--toolchain",
                    ROOT / "toolchains/arm-none-eabi-cortex-m4f.cmake", "-DCMAKE_BUILD_TYPE=MinSizeRel", *options],
                   check=True, stdout=subprocess.DEVNULL)
    commands = json.loads((folder / "compile_commands.json").read_text())
    found = sorted(os.path.relpath(c["file"], ROOT) for c in commands)
    deps = subprocess.run(["bash", ROOT / "scripts/deps.sh", "--toolchain", ROOT / "toolchains/arm-none-eabi-cortex-m4f.cmake",
                           "--where"], check=True, capture_output=True, text=True).stdout.strip()
    return [s for s in found if s.startswith(KEPT)], Path(deps)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        verified, deps = sources_of(Path(work) / "verified")
        sealed, _ = sources_of(Path(work) / "sealed", "-DSINTER_SEALED=ON")
    verifier = sorted(set(verified) - set(sealed))
    headers = [p for suffix in ("h", "def") for folder in ("runtime", "schemas") for p in (ROOT / folder).rglob(f"*.{suffix}")]
    for path in [ROOT / s for s in verified] + headers:
        target = out / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copytree(deps / "include/flatbuffers", out / "third_party/flatbuffers")
    shutil.copy(deps / "include/xxhash.h", out / "third_party/xxhash.h")
    shutil.copytree(ROOT / "examples/microcontroller", out / "examples/microcontroller",
                    ignore=shutil.ignore_patterns("CMakeLists.txt"))
    lists = {"SINTER_MICRO_SOURCES": sealed, "SINTER_MICRO_VERIFIER": verifier}
    (out / "sources.cmake").write_text("".join(f"set({n}\n  " + "\n  ".join(s) + ")\n" for n, s in lists.items()))
    (out / "sources.mk").write_text("".join(f"{n} := \\\n  " + " \\\n  ".join(s) + "\n" for n, s in lists.items()))
    (out / "sinter.cmake").write_text(CMAKE.format(flags=FLAGS))
    (out / "sinter.mk").write_text(MAKE.format(flags=FLAGS))
    (out / "zephyr").mkdir()
    for name, text in (("module.yml", ZEPHYR_MODULE), ("Kconfig", ZEPHYR_KCONFIG), ("CMakeLists.txt", ZEPHYR_CMAKE)):
        (out / "zephyr" / name).write_text(text)


if __name__ == "__main__":
    main()
