#include "runtime/backend/target.h"

#include <gtest/gtest.h>

#include "converter/target/target_names.h"
#include "converter/target/target_platforms.h"
#include "platforms/platforms.h"
#include "runtime/backend/cpu.h"

namespace sinter::convert {
namespace {

Target parsed(const char* text) {
  std::string fault;
  const std::optional<Target> target = parse_target(text, &fault);
  EXPECT_TRUE(target.has_value()) << text << ": " << fault;
  return target.value_or(Target{});
}

TEST(Targets, EveryNameIsReadAndWritten) {
  for (const NamedTarget& t : named_targets()) {
    EXPECT_EQ(target_text(parsed(t.name)), t.name);
    EXPECT_EQ(parsed(t.name).cores, t.cores);
  }
  for (const char* text : {"x86_64+avx2", "x86_64+avx512", "x86_64+avx512bf16", "aarch64+neon",
                           "aarch64+i8mm", "aarch64+fp16+dotprod", "portable+dotprod", "portable+avx2"})
    EXPECT_EQ(target_text(parsed(text)), text);
  EXPECT_EQ(target_text(parsed("aarch64+dotprod+neon")), "aarch64");
  EXPECT_EQ(target_text(parsed("x86_64+avx512vnni+avx2")), "x86_64");
}

TEST(Targets, NativeIsThisMachine) {
  const Target native = parsed("native");
  EXPECT_EQ(native.architecture, kHostArchitecture);
  EXPECT_NE(native.features, 0u);
  EXPECT_EQ(parsed(target_text(native).c_str()).features, native.features);
}

TEST(Targets, AFeatureBringsThoseThatItImplies) {
  EXPECT_TRUE(parsed("x86_64+avx512vnni").has(Feature::kAvx2));
  EXPECT_FALSE(parsed("x86_64+avx2").has(Feature::kAvx512));
  EXPECT_TRUE(parsed("x86_64+avx512bf16").has(Feature::kAvx512Vnni));
  EXPECT_FALSE(parsed("x86_64").has(Feature::kAvx512Bf16));
  EXPECT_TRUE(parsed("aarch64+i8mm").has(Feature::kDotprod));
}

TEST(Targets, WhatIsNotOneIsRefusedWithWhatCanBeGiven) {
  for (const auto& [text, word] : {std::pair{"", "x86_64"},
                                   {"pdp11", "portable"},
                                   {"cuda+avx2", "sm75"},
                                   {"x86_64+", "avx2"},
                                   {"x86_64+dotprod", "avx512vnni"},
                                   {"native+avx2", "native alone"},
                                   {"cortex-m4+neon", "alone"}}) {
    std::string fault;
    EXPECT_FALSE(parse_target(text, &fault).has_value()) << text;
    EXPECT_NE(fault.find(word), std::string::npos) << fault;
  }
}

TEST(Targets, EachHasItsTableOfCosts) {
  EXPECT_EQ(cpu_of(parsed("x86_64")), Cpu::kAvx512Vnni);
  EXPECT_EQ(cpu_of(parsed("x86_64+avx512bf16")), Cpu::kAvx512Vnni);
  EXPECT_EQ(cpu_of(parsed("x86_64+avx2")), Cpu::kAvx2);
  EXPECT_EQ(cpu_of(parsed("x86_64+avx512")), Cpu::kAvx2);
  EXPECT_EQ(cpu_of(parsed("aarch64")), Cpu::kDotprod);
  EXPECT_EQ(cpu_of(parsed("aarch64+neon")), Cpu::kNeon);
  EXPECT_EQ(cpu_of(parsed("armv7")), Cpu::kArmv7);
  EXPECT_EQ(cpu_of(parsed("portable")), Cpu::kPortable);
  EXPECT_EQ(cpu_of(parsed("cortex-m4")), Cpu::kCortexM);
}

TEST(Targets, PlatformsServeThoseThatTheyHaveKernelsFor) {
  const auto names = [](const char* target) {
    std::string all;
    for (const Platform* p : platforms_for(parsed(target))) all += std::string(p->name) + " ";
    return all;
  };
  for (const char* target : {"x86_64", "aarch64", "armv7"}) EXPECT_EQ(names(target), "xnnpack simd ");
  for (const char* target : {"portable", "cortex-m4"}) EXPECT_EQ(names(target), "");
  // oneDNN is planned on request only.
  const auto serving = [](const char* target) {
    std::string all;
    for (const Platform* p : platforms_serving(parsed(target))) all += std::string(p->name) + " ";
    return all;
  };
  EXPECT_EQ(serving("x86_64"), "xnnpack simd onednn ");
  EXPECT_EQ(serving("aarch64"), "xnnpack simd ");
  EXPECT_EQ(serving("portable"), "");
  const auto computing = [](const char* target, DType type) {
    std::string all;
    for (const Platform* p : platforms_serving(parsed(target)))
      if (computes_half(*p, parsed(target), type)) all += std::string(p->name) + " ";
    return all;
  };
  EXPECT_EQ(computing("aarch64", DType::kFloat16), "xnnpack ");
  EXPECT_EQ(computing("aarch64", DType::kBFloat16), "");
  EXPECT_EQ(computing("x86_64", DType::kFloat16), "");
  EXPECT_EQ(computing("x86_64", DType::kBFloat16), "");
  EXPECT_EQ(computing("x86_64+avx512bf16", DType::kBFloat16), "simd onednn ");
}

}  // namespace
}  // namespace sinter::convert
