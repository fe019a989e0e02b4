// The verifier's result for a file that a test has built.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sinter/sinter.h"
#include "tests/format/model_builder.h"

namespace sinter::testing {

// Of a ModelBuilder, or of what is one.
template <class Builder>
Status opened(Builder&& b) {
  const AlignedBytes file = b.build();
  const OpenOptions options{.kernels = reference_kernels()};
  const auto bytes = Model::open_bytes(file.span(), options);
  if (!bytes.ok()) return bytes.status();
  AlignedBytes memory(bytes.value());
  return Model::open(file.span(), memory.span(), options).status();
}

// Not opened, for a reason that contains `part`.
#define EXPECT_REFUSED(builder, part)                                                           \
  do {                                                                                          \
    const Status status_ = opened(builder);                                                     \
    EXPECT_TRUE(status_.code == Code::kCorrupt || status_.code == Code::kUnsupported);          \
    EXPECT_THAT(status_.message != nullptr ? status_.message : "", ::testing::HasSubstr(part)); \
  } while (false)

}  // namespace sinter::testing
