#!/usr/bin/env python3
"""Bytes of Sinter's own code in a static aarch64 program with one embedded model: a table.

    embedded_sizes.py --sinter PROGRAM MODEL.onnx...

Each model is converted for portable kernels, embedded, and linked with the runtime, its operations and its element types
(-Os, static, one thread), verified and sealed. The bytes of an empty C program and of the model are subtracted. The program is run
under qemu-aarch64 where that is installed.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(sizes LANGUAGES C CXX)
include("{net}.cmake")
add_subdirectory("{root}" sinter)
add_link_options(-static -Wl,--gc-sections -s)
add_executable(empty empty.c)
add_executable(app main.cc ${{net_SOURCES}})
target_include_directories(app PRIVATE "{folder}")
target_compile_options(app PRIVATE -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections)
target_link_libraries(app PRIVATE Sinter::sinter_runtime Sinter::sinter_kernels)
"""
MAIN = """#include <cstdio>
#include "net.h"
#include "sinter/model.h"
#include "sinter/session.h"
alignas(sinter::kBufferAlignment) static std::byte memory[{bytes}];
int main() {{
  using namespace sinter;
  const OpenOptions options{{.kernels = net_kernels(), .stable = true}};
  Result<Model> model = Model::open(std::as_bytes(std::span(net_model)), memory, options);
  if (!model.ok()) return 1;
  Result<Session> session = Session::create(*model, std::span(memory).subspan(model->retained_bytes()), {{}});
  if (!session.ok() || !session->run().ok()) return 2;
  const TensorView output = session->output(0);
  return std::fwrite(output.data, 1, static_cast<size_t>(output.dense_bytes()), stdout) == 0 ? 3 : 0;
}}
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=options.pop("text", True), **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def code_of(program):
    """Bytes of text and data."""
    text, data = run("size", program).splitlines()[1].split()[:2]
    return int(text) + int(data)


def measure(sinter, model, sealed, folder):
    net, build = os.path.join(folder, "net"), os.path.join(folder, "build")
    run(sinter, "convert", model, "-o", f"{folder}/m.sinter", "--target", "portable", "--quiet")
    run(sinter, "embed", f"{folder}/m.sinter", "-o", net)
    open(f"{folder}/CMakeLists.txt", "w").write(PROJECT.format(net=net, root=ROOT, folder=folder))
    open(f"{folder}/main.cc", "w").write(MAIN.format(bytes=64 << 20))
    open(f"{folder}/empty.c", "w").write("int main(void) { return 0; }\n")
    run("cmake", "-G", "Ninja", "-S", folder, "-B", build, "--toolchain", f"{ROOT}/toolchains/aarch64-linux-gnu.cmake",
        "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DSINTER_XNNPACK=OFF", "-DSINTER_SIMD=OFF", "-DSINTER_THREADS=OFF",
        "-DSINTER_CUDA_BACKEND=OFF", "-DSINTER_DEVICE_MEMORY=OFF", "-DSINTER_BUILD_CONVERTER=OFF",
        "-DSINTER_BUILD_TESTS=OFF", f"-DSINTER_SEALED={'ON' if sealed else 'OFF'}")
    run("cmake", "--build", build, "--target", "app", "empty")
    if shutil.which("qemu-aarch64"):
        run("qemu-aarch64", f"{build}/app", text=False)
    own = code_of(f"{build}/app") - code_of(f"{build}/empty")
    return own - os.path.getsize(f"{folder}/m.sinter"), code_of(f"{build}/app"), os.path.getsize(f"{folder}/m.sinter")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sinter", required=True)
    p.add_argument("models", nargs="+")
    o = p.parse_args()
    print("| model | build | own code, bytes | program | model |\n| --- | --- | --- | --- | --- |")
    for model in o.models:
        for sealed in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                own, program, bytes_of_model = measure(os.path.abspath(o.sinter), os.path.abspath(model), sealed, folder)
            name = os.path.basename(model)
            print(f"| {name} | {'sealed' if sealed else 'verified'} | {own:,} | {program:,} | {bytes_of_model:,} |", flush=True)


if __name__ == "__main__":
    main()
