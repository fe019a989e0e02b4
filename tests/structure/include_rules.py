#!/usr/bin/env python3
"""The include rules of docs/design.md, as a table.

    include_rules.py SOURCE_ROOT     check the tree, print every breach, exit 1 if there is one
    include_rules.py --self-test     check that the checker finds what it should

A file belongs to the first area whose path prefix fits. Project includes are written from the repository's root, public
headers as <sinter/...>. Third-party headers and, on the device side, parts of the standard library that allocate, throw
or run code before main are ruled as well.
"""
import re
import sys
from pathlib import Path

BASE = ("schemas/", "runtime/")
CORE = ("converter/ir/", "converter/flow/", "converter/diagnostics/", "converter/files/")
RUNTIME_PARTS = ("runtime/model/", "runtime/backend/", "runtime/session/")

# (area, what it may include besides itself). Order matters: the first prefix that fits wins.
AREAS = [
    ("schemas/", ()),
    # The header that includes all of the public API, the reference kernels among it.
    ("runtime/include/sinter/sinter.h", ("runtime/include/", "runtime/kernels/reference.h")),
    # What public headers include is installed with them.
    ("runtime/include/", ("schemas/ops.def", "runtime/core/", "runtime/backend/")),
    ("runtime/core/", ("schemas/", "runtime/include/")),
    ("runtime/backend/", ("schemas/", "runtime/core/", "runtime/include/")),
    ("runtime/kernels/", ("schemas/", "runtime/core/", "runtime/backend/", "runtime/include/")),
    ("runtime/signature/", ("runtime/core/",)),
    ("runtime/model/", ("schemas/", "runtime/core/", "runtime/backend/", "runtime/signature/", "runtime/include/")),
    ("runtime/session/", ("schemas/", "runtime/core/", "runtime/include/") + RUNTIME_PARTS),
    # The rest of the runtime (public API, platform layer) joins the parts, but not the kernels: those are handed in.
    ("runtime/", ("schemas/", "runtime/core/", "runtime/include/") + RUNTIME_PARTS),
    # Tests that belong to one platform.
    ("platforms/*/tests/", ("",)),
    # The emulated device is that of another platform.
    ("platforms/cuda_emulated/", ("runtime/core/", "runtime/backend/", "platforms/cuda/")),
    # No other platform includes one, but for the form in which they list times.
    ("platforms/*/", ("runtime/core/", "runtime/backend/", "runtime/include/", "schemas/ops.def",
                      "schemas/weight_formats.def", "platforms/times/")),
    # The list of all.
    ("platforms/", ("runtime/core/", "runtime/backend/", "runtime/include/", "platforms/")),
    # The program runs models on every backend that it was built with.
    ("converter/cli/", ("schemas/", "converter/", "runtime/", "platforms/")),
    # The layers of the converter, each of which includes those above it. All of them read files with the device's
    # verifier and run the reference kernels; of the platforms one includes the list of their planning sides.
    # The map of elements is about attributes of operations, and constants are computed in parts by it: one layer.
    ("converter/ir/", BASE + ("converter/flow/",)),
    ("converter/flow/", BASE + ("converter/ir/",)),
    ("converter/diagnostics/", BASE + ("converter/ir/",)),
    ("converter/files/", BASE + ("converter/diagnostics/",)),
    ("converter/target/", BASE + ("platforms/platforms.h", "converter/diagnostics/nearest_name.h")),
    ("converter/types/", BASE + CORE),
    # Import asks for decisions about types. The lattice that they are made by (promote.h) is not among these.
    ("converter/import/", BASE + CORE + ("converter/data/",) + tuple(
        f"converter/types/{name}.h" for name in ("branch_edge", "operand_rules", "representable", "settle"))),
    # A repaired ONNX file has the decisions of import.
    ("converter/repair/", BASE + CORE + ("converter/import/",) + tuple(
        f"converter/types/{name}.h" for name in ("branch_edge", "representable", "settle"))),
    # Files of people: pictures, sounds and lists.
    ("converter/data/", BASE + CORE),
    ("converter/passes/", BASE + CORE),
    ("converter/cost/", BASE + ("converter/ir/",)),
    ("converter/plan/", BASE + CORE + ("converter/target/", "converter/cost/")),
    ("converter/sign/", BASE + CORE),
    # What it writes are the messages that import reads.
    ("converter/export/", BASE + CORE + ("converter/import/read/",)),
    ("converter/emit/", BASE + CORE + ("converter/plan/", "converter/sign/")),
    # Quantization tries what it proposes: it plans and writes graphs, and runs them on samples that it reads as arrays.
    ("converter/quantize/", BASE + CORE + ("converter/target/", "converter/cost/", "converter/data/", "converter/import/",
                                           "converter/passes/", "converter/plan/", "converter/emit/")),
    # What conversion and quantization report, for people.
    ("converter/report/", BASE + CORE + ("converter/convert.h", "converter/plan/", "converter/quantize/")),
    ("converter/", BASE + ("converter/",)),
    # The Python package calls the commands and, as an application does, the runtime.
    ("python/", ("converter/cli/program.h", "converter/diagnostics/errors.h", "converter/diagnostics/nearest_name.h",
                 "converter/diagnostics/printable.h", "converter/files/ending.h", "converter/files/unfinished.h", "runtime/include/")),
    ("bench/", ("",)),
    ("tests/", ("",)),
    # Runner and the C API are built from the public headers, as an application is.
    ("application/", ("runtime/include/",)),
    ("examples/", ("runtime/include/",)),
]

DEVICE = ("schemas/", "runtime/", "platforms/", "application/")
NOT_ON_DEVICE = set("""
    iostream istream ostream fstream sstream iomanip streambuf locale regex filesystem string vector deque list map set
    unordered_map unordered_set queue stack functional memory_resource thread mutex shared_mutex condition_variable future
    exception stdexcept typeinfo typeindex any format random chrono valarray
    """.split())
# Parts of platforms that are for tests on a workstation.
NOT_FOR_DEVICES = ("platforms/cuda/emulator/",)
# (area that alone may include it, pattern)
THIRD_PARTY = [
    (("platforms/xnnpack/",), re.compile(r"^(xnnpack|cpuinfo)\.h$")),
    (("platforms/onednn/",), re.compile(r"^(oneapi/|third_party/onednn/)")),
    (("runtime/signature/", "converter/sign/"), re.compile(r"^sodium(/|\.h$)")),
    (("platforms/", "runtime/threads/"), re.compile(r"^pthreadpool\.h$")),
    (("platforms/",), re.compile(r"^hwy/")),
    (("platforms/cuda/",), re.compile(r"^cuda(_|\.h)")),
    (("platforms/cuda/emulator/",), re.compile(r"^boost/")),
    (("converter/data/",), re.compile(r"^(png|jpeglib|jerror)\.h$")),
    (("converter/", "python/", "tests/", "bench/"), re.compile(r"^(google/protobuf|fmt|nlohmann|CLI)/|\.pb\.h$|^zip\.h$|^zlib\.h$")),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
# Applications include these, so macros need names that theirs do not have.
PUBLIC = ("runtime/include/", "application/include/", "runtime/core/", "runtime/backend/", "schemas/")
# Sources of the converter declare no function of another source: that would be an include that no rule sees.
DECLARATION = re.compile(r"^(?!return|using|typedef|extern|friend|static_assert)[A-Za-z_][\w:<>,&* ]*[ *&](\w+)\([^;{}]*\)(?: const)?;", re.M)
# Where the functions of the passes are defined: quantization is above the passes.
PASS = re.compile(r"^SINTER_PASS\((\w+)", re.M)
PASS_AREAS = ("converter/ir/", "converter/passes/")
MACRO = re.compile(r"^\s*#\s*define\s+(?!SINTER_)(\w+)")
OURS = re.compile(r"^(schemas|runtime|platforms|converter|python|tests|bench)/")


def area_of(path):
    for prefix, allowed in AREAS:
        if fits(path, (prefix,)):
            return prefix, allowed
    return None, None


def fits(target, allowed):
    for rule in allowed:
        if "*" in rule:
            if re.match(re.escape(rule).replace(r"\*", "[^/]+"), target):
                return True
        elif target.startswith(rule):
            return True
    return False


def breaches_of(path, text):
    """Yields (line number, message) for every include of the file that the table forbids."""
    prefix, allowed = area_of(path)
    if prefix is None:
        return
    # A platform's own folder, not all of platforms/, is what counts as itself.
    own = "/".join(path.split("/")[:2]) + "/" if path.startswith("platforms/") else prefix
    device = path.startswith(DEVICE) and "/tests/" not in path and not path.startswith(NOT_FOR_DEVICES)
    for number, line in enumerate(text.splitlines(), 1):
        if path.startswith(PUBLIC) and path.endswith((".h", ".def")) and (macro := MACRO.match(line)):
            yield number, f"a macro of a public header begins with SINTER_, {macro.group(1)} does not"
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1) or match.group(2)
        if target.startswith("sinter/"):
            target = "runtime/include/" + target
        if OURS.match(target):
            generated_proto = target == "converter/import/read/onnx.pb.h"
            if not (target.startswith(own) or fits(target, allowed)) and not generated_proto:
                yield number, f"{prefix} may not include {target}"
        elif device and target in NOT_ON_DEVICE:
            yield number, f"<{target}> is not for the device side"
        for areas, pattern in THIRD_PARTY:
            if pattern.search(target) and not path.startswith(areas):
                yield number, f"{target} belongs to {', '.join(areas)} only"


def hand_declarations_of(path, text):
    """Yields (line number, message) for every function that a source of the converter or its tests declares, but not defines."""
    if not path.startswith(("converter/", "tests/unit/")) or not path.endswith(".cc"):
        return
    for match in DECLARATION.finditer(text):
        name = match.group(1)
        if not re.search(rf"^[A-Za-z_][^\n;]*[ *&:]{name}\([^;]*?\) (?:const )?\{{", text[match.end():], re.M):
            yield text.count("\n", 0, match.start()) + 1, f"{name}() is declared by hand; include its header"


def check_passes(root):
    """The passes whose functions are not defined in converter/ir/ or converter/passes/."""
    sources = "".join(f.read_text() for area in PASS_AREAS for f in sorted((root / area).rglob("*.cc")))
    rows = (root / "converter/passes/passes.def").read_text()
    return [f"converter/passes/passes.def: {name}() is not defined in {' or '.join(PASS_AREAS)}"
            for name in PASS.findall(rows) if not re.search(rf"^int {name}\(Graph& graph\) \{{", sources, re.M)]


def check(root):
    root = Path(root)
    count, found = 0, check_passes(root)
    for top in ("schemas", "runtime", "platforms", "application", "converter", "python", "tests", "bench", "examples"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cc", ".def", ".inc") or "generated" in file.parts:
                continue
            path = file.relative_to(root).as_posix()
            count += 1
            text = file.read_text(errors="replace")
            found += [f"{path}:{n}: {m}" for check_file in (breaches_of, hand_declarations_of)
                      for n, m in check_file(path, text)]
    return count, found


def self_test():
    cases = [
        ("runtime/core/a.h", '#include "runtime/session/session.h"', True),
        ("runtime/core/a.h", '#include "runtime/core/status.h"', False),
        ("runtime/core/a.h", "#include <vector>", True),
        ("runtime/core/a.h", "#include <span>", False),
        ("runtime/kernels/conv.cc", '#include "runtime/backend/kernel.h"', False),
        ("runtime/session/s.cc", '#include "runtime/kernels/conv.h"', True),
        ("runtime/model/m.cc", '#include "converter/ir/graph.h"', True),
        ("runtime/core/a.h", "#define INT(name) int name;", True),
        ("runtime/core/a.h", "#define SINTER_INT(name) int name;", False),
        ("runtime/kernels/a.h", "#define INT(name) int name;", False),
        ("platforms/x86/a.cc", '#include "platforms/arm/b.h"', True),
        ("platforms/x86/a.cc", '#include "platforms/simd/b.h"', True),
        ("platforms/x86/a.cc", '#include "platforms/x86/b.h"', False),
        ("platforms/x86/tests/a.cc", '#include "converter/ir/graph.h"', False),
        ("platforms/all.cc", '#include "platforms/x86/b.h"', False),
        ("platforms/simd/a.cc", '#include "platforms/xnnpack/b.h"', True),
        ("platforms/simd/a.cc", '#include "runtime/session/session.h"', True),
        ("platforms/simd/a.cc", "#include <xnnpack.h>", True),
        ("platforms/simd/a.cc", "#include <oneapi/dnnl/dnnl.h>", True),
        ("converter/target/a.cc", '#include "platforms/platforms.h"', False),
        ("converter/passes/a.cc", '#include "platforms/platforms.h"', True),
        ("converter/passes/a.cc", '#include "converter/plan/planner.h"', True),
        ("converter/quantize/weights/a.cc", '#include "converter/plan/planner.h"', False),
        ("converter/quantize/weights/a.cc", '#include "converter/convert.h"', True),
        ("converter/passes/a.cc", '#include "platforms/xnnpack/conv.h"', True),
        ("converter/passes/a.cc", '#include "converter/quantize/quantize.h"', True),
        ("converter/passes/a.cc", "int integer_form(Graph& graph);", True),
        ("converter/passes/a.cc", "int sweep(Graph& graph);\nint sweep(Graph& graph) { return 0; }", False),
        ("converter/passes/a.h", "int integer_form(Graph& graph);", False),
        ("converter/cli/a.cc", '#include "platforms/xnnpack/backend.h"', False),
        ("converter/import/a.cc", '#include "converter/import/read/onnx.pb.h"', False),
        ("converter/import/lower/a.cc", '#include "converter/types/promote.h"', True),
        ("converter/import/a.cc", '#include "converter/types/settle.h"', False),
        ("runtime/model/a.cc", '#include "converter/import/read/onnx.pb.h"', True),
        ("application/runner.cc", '#include "sinter/session.h"', False),
        ("application/runner.cc", '#include "runtime/session/creator.h"', True),
        ("application/runner.cc", "#include <string>", True),
        ("examples/classify/main.cc", "#include <sinter/model.h>", False),
        ("examples/classify/main.cc", '#include "runtime/core/status.h"', True),
    ]
    bad = 0
    for path, line, expected in cases:
        if bool([*breaches_of(path, line), *hand_declarations_of(path, line)]) != expected:
            print(f"self-test: {path}: {line}: expected {'a breach' if expected else 'no breach'}")
            bad += 1
    return bad


def main():
    if sys.argv[1:] == ["--self-test"]:
        bad = self_test()
        print("self-test", "failed" if bad else "passed")
        return 1 if bad else 0
    count, found = check(sys.argv[1])
    print("\n".join(found))
    print(f"{count} files, {len(found)} breaches")
    if count == 0:
        print("nothing was checked")
        return 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
