// The tested backends, and the instruction sets of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "platforms/platforms.h"
#include "sinter/backends.h"
#include "tests/op_harness/backends.h"
#include "tests/op_harness/instruction_sets.h"

namespace sinter::test {
namespace {

// Returns this machine with the features of its processor by which platforms take calls or refuse them.
Target host() {
  Target target{.architecture = kHostArchitecture};
#if defined(__x86_64__)
  if (std::getenv("SINTER_CPU_CAP") != nullptr) return target;
  if (__builtin_cpu_supports("avx512vnni")) target.features |= Feature::kAvx512Vnni;
  if (__builtin_cpu_supports("avx512bf16")) target.features |= Feature::kAvx512Bf16;
#endif
  return target;
}
const Target kHost = host();

std::vector<std::string> names_in(const char* list) {
  std::vector<std::string> names;
  for (const char* at = list; at != nullptr && *at != '\0';) {
    const char* end = std::strchr(at, ',');
    names.emplace_back(at, end != nullptr ? static_cast<size_t>(end - at) : std::strlen(at));
    at = end != nullptr ? end + 1 : nullptr;
  }
  return names;
}

std::vector<TestedBackend> all_open() {
  std::vector<TestedBackend> all;
  const std::vector<std::string> names = names_in(std::getenv("SINTER_TEST_BACKENDS"));
  for (Backend* backend : default_backends())
    for (const Platform* platform : all_platforms()) {
      if (std::string_view(platform->name) != backend->name()) continue;
      const Target device{.architecture = Architecture::kCuda};
      const Target target = platform->own_memory ? device : kHost;
      if (!platform->serves(target)) continue;
      // A device is tested by itself: it may be an emulated one, which takes minutes.
      if (names.empty() ? platform->own_memory
                        : std::find(names.begin(), names.end(), platform->name) == names.end())
        continue;
      BumpArena own;
      const Status opened = backend->open(own);
      if (opened.code == Code::kUnsupported) {
        std::printf("%s is not tested: %s\n", platform->name, sentence(opened).c_str());
        EXPECT_TRUE(names.empty()) << platform->name << " is to be tested and cannot be";
        continue;
      }
      EXPECT_TRUE(opened.ok()) << platform->name;
      all.push_back({backend, platform, target});
    }
  return all;
}

}  // namespace

bool TestedBackend::claims(Op op) const { return platform->has_kernel(target, op); }

std::vector<TestedBackend>& tested_backends() {
  static std::vector<TestedBackend> all = all_open();
  return all;
}

bool a_driver_is_open() {
  static const bool open = [] {
    const auto& all = tested_backends();
    return std::any_of(all.begin(), all.end(), [](const TestedBackend& tested) {
      return tested.platform->own_memory && !tested.is_emulated();
    });
  }();
  return open;
}

TestedBackend* tested_backend(std::string_view name) {
  for (TestedBackend& tested : tested_backends())
    if (tested.name() == name) return &tested;
  return nullptr;
}

bool backends_are_limited() { return std::getenv("SINTER_TEST_BACKENDS") != nullptr; }

AlsoTested::AlsoTested(Backend& backend, const Platform& platform) {
  tested_backends().push_back({&backend, &platform, kHost});
}
AlsoTested::~AlsoTested() { tested_backends().pop_back(); }

// Lists that static objects of other files fill.
namespace {
std::vector<const InstructionSets*>& all_sets() {
  static std::vector<const InstructionSets*> sets;
  return sets;
}
}  // namespace

InstructionSets::InstructionSets(const char* backend, std::vector<const char*> (*names)(),
                                 bool (*limit)(const char*))
    : backend_(backend), names_(names), limit_(limit) {
  all_sets().push_back(this);
}

const InstructionSets* InstructionSets::of(std::string_view backend) {
  for (const InstructionSets* sets : all_sets())
    if (backend == sets->backend_) return sets;
  return nullptr;
}

}  // namespace sinter::test
