// Which scale and zero point every value gets: the observed range's, unless what makes the value decides.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "converter/quantize/integers/insert_quantizers.h"

namespace sinter::convert {

// The scales of all values that are rounded and of what is moved from them.
//   moved           that of what is moved
//   softmax         256 steps from 0 to 1
//   c * x, c > 0    x's, scaled: the integers stay what they are
//   joined          values with nearly the steps of the whole take these
class ValueScales {
 public:
  ValueScales(const Graph& graph, const std::vector<Role>& roles, const std::set<ValueId>& wanted,
              const std::map<ValueId, QuantParams>& observed);
  const QuantParams* find(ValueId id) const {
    const auto at = scales_.find(id);
    return at == scales_.end() ? nullptr : &at->second;
  }

 private:
  void settle();
  void observe(ValueId id);
  void tie();
  bool integer(int node) const { return node >= 0 && roles_[static_cast<size_t>(node)] == Role::kInteger; }

  const Graph& g_;
  const std::vector<Role>& roles_;
  const std::set<ValueId>& wanted_;
  std::map<ValueId, QuantParams> observed_, scales_;
};

}  // namespace sinter::convert
