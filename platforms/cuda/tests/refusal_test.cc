// The refusals of a machine without a device, and of one whose driver fails.
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "platforms/cuda/cuda_backend.h"

namespace sinter::cuda {
namespace {

constinit CudaBackend machine;

TEST(CudaBackend, RefusesAMachineWithoutADevice) {
  BumpArena own;
  const Status opened = machine.open(own);
  if (opened.ok()) GTEST_SKIP() << "this machine has a CUDA device: " << machine.device().name();
  EXPECT_EQ(opened.code, Code::kUnsupported);
  char text[256];
  format_status(opened, text);
  EXPECT_NE(std::strstr(text, "CUDA driver"), nullptr) << text;
  std::byte* block = nullptr;
  EXPECT_EQ(machine.allocate(64, 64, &block).code, Code::kUnsupported);
  EXPECT_EQ(machine.allocate_staging(64, &block).code, Code::kUnsupported);
}

// The entry points of a driver whose failures the tests set.
EntryPoints entries;
int devices = 1, major = 9, compiled_by = 0;
DriverResult initialised = kDriverSuccess;
const Status kNoKernels = unsupported("there are no kernels");

const Provider kFake = {[](const EntryPoints** all) {
                          entries.init = [](unsigned) { return initialised; };
                          entries.device_count = [](int* n) { return *n = devices, kDriverSuccess; };
                          entries.device_get = [](DeviceNumber* d, int) { return *d = 0, kDriverSuccess; };
                          entries.device_name = [](char* name, int, DeviceNumber) {
                            return *name = '\0', kDriverSuccess;
                          };
                          entries.device_attribute = [](int* v, DeviceAttribute a, DeviceNumber) {
                            return *v = a == kCapabilityMajor ? major : 0, kDriverSuccess;
                          };
                          entries.driver_version = [](int* v) { return *v = 12040, kDriverSuccess; };
                          entries.error_name = [](DriverResult, const char** name) {
                            return *name = "CUDA_ERROR_UNKNOWN", kDriverSuccess;
                          };
                          *all = &entries;
                          return ok_status();
                        },
                        [](const void* const** images, int* toolkit) {
                          *images = nullptr, *toolkit = compiled_by;
                          return compiled_by == 0 ? kNoKernels : ok_status();
                        }};

std::string refusal() {
  Device device(kFake);
  const Status first = device.open(), second = device.open();
  EXPECT_EQ(first.code, Code::kUnsupported);
  EXPECT_EQ(first.message, second.message);
  char text[256];
  format_status(first, text);
  return text;
}

TEST(Device, RefusesWhatItCannotUse) {
  EXPECT_NE(refusal().find("no kernels"), std::string::npos);
  compiled_by = 13;
  EXPECT_NE(refusal().find("of version 12 and the kernels were compiled by a toolkit of version 13"),
            std::string::npos);
  compiled_by = 0, devices = 0;
  EXPECT_NE(refusal().find("finds no device"), std::string::npos);
  devices = 1, initialised = kDriverNoDevice;
  EXPECT_NE(refusal().find("finds no device"), std::string::npos);
  initialised = 999;
  EXPECT_NE(refusal().find("reports CUDA_ERROR_UNKNOWN when asked to start"), std::string::npos);
  initialised = kDriverSuccess, major = 6;
  EXPECT_NE(refusal().find("compute capability 6.0; 7.5 is needed"), std::string::npos) << refusal();
}

// Returns the refusal to open the module if SINTER_CUDA_MODULE has this value.
std::string module_refusal(const std::string& path) {
  ::setenv("SINTER_CUDA_MODULE", path.c_str(), 1);
  const void* const* images = nullptr;
  int toolkit = 0;
  const Status status = kMachine.units(&images, &toolkit);
  ::unsetenv("SINTER_CUDA_MODULE");
  EXPECT_EQ(status.code, Code::kUnsupported) << path;
  char text[512];
  format_status(status, text);
  return text;
}

TEST(Module, IsRefusedUnlessItIsWholeAndOfThisVersion) {
  EXPECT_NE(module_refusal("/nonexistent/module.so").find("/nonexistent/module.so"), std::string::npos);
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  EXPECT_NE(module_refusal(folder).find("cannot be opened"), std::string::npos);
  // These are another library, and the first half of one. The C library's version function is taken, because
  // a sanitizer puts its own definitions of common functions into the program.
  Dl_info library = {};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&gnu_get_libc_version), &library), 0);
  EXPECT_NE(module_refusal(library.dli_fname).find("of another version of Sinter"), std::string::npos);
  const std::filesystem::path half = folder / "sinter-half-a-module.so";
  std::filesystem::remove(half);
  std::filesystem::copy_file(library.dli_fname, half);
  std::filesystem::resize_file(half, std::filesystem::file_size(half) / 2);
  EXPECT_NE(module_refusal(half).find("is not a complete library"), std::string::npos);
  std::filesystem::remove(half);
  // A pipe is opened without waiting.
  ASSERT_EQ(::mkfifo(half.c_str(), 0600), 0);
  EXPECT_NE(module_refusal(half).find("is not a complete library"), std::string::npos);
  std::filesystem::remove(half);
}

}  // namespace
}  // namespace sinter::cuda
