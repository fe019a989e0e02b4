// A check over all cases of a test program: equal packings of equal constants are equal bytes, so that steps
// can share them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"

namespace sinter::test {

// Compares with the packings of earlier cases. `packed` has 0xa5 where nothing was packed.
inline void expect_equal_packing(const char* backend, const OpCall& call, const Packing& packing,
                                 std::span<const std::byte> packed) {
  static std::map<std::string, std::vector<std::byte>> seen;
  std::string key = backend;
  const auto add = [&](const void* at, size_t bytes) { key.append(static_cast<const char*>(at), bytes); };
  add(&packing.bytes, sizeof packing.bytes);
  add(&packing.inputs, sizeof packing.inputs);
  add(packing.parameters, sizeof packing.parameters);
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if ((packing.inputs >> i & 1) != 0 && call.has_input(i)) {
      key += static_cast<char>(i);
      add(call.in(i).data, static_cast<size_t>(call.in(i).dense_bytes()));
    }
  const auto [at, is_new] = seen.try_emplace(key, packed.begin(), packed.end());
  EXPECT_TRUE(is_new || std::equal(packed.begin(), packed.end(), at->second.begin(), at->second.end()))
      << "equal packings of " << op_name(call.op) << " differ";
}

}  // namespace sinter::test
