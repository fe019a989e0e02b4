// Calls of single operations on made-up operands, for measuring kernels without a model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "platforms/times/kernel_time.h"
#include "runtime/backend/backend.h"

namespace sinter::bench {

// A call that a backend has prepared, with the memory of its operands, for one thread.
class PreparedCase {
 public:
  virtual ~PreparedCase() = default;
  virtual Status run() = 0;
  virtual const OpCall& call() const = 0;
};

struct OpCase {
  Op op;
  std::string name;  // unique for each operation: its dims
  // Null where the backend refuses the call; it must outlive the result.
  std::function<std::unique_ptr<PreparedCase>(Backend&)> prepare;
};
const std::vector<OpCase>& op_cases();

// The case whose time is that of all calls of a class (platforms/times/kernel_time.h).
struct Representative {
  Op op;
  kernel_time::CallClass calls;
  const char* op_name;
  const char* class_name;
  const char* case_name;
};
const std::vector<Representative>& representatives();

}  // namespace sinter::bench
