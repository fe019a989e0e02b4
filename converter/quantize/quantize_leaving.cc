#include <fmt/format.h>

#include <cmath>

#include "converter/quantize/leave_float.h"
#include "converter/quantize/quantizer.h"

namespace sinter::convert {
namespace {

// Without a wish: up to the signal to noise on the left as much time, and as many operations, as behind it.
constexpr LeaveTarget kWorthIt[] = {{24}, {28, 0.5, 0.4}, {32, 0.1, 0.15}, {40, 0.03, 0.06}};
// With max_drop: signal to noise is raised by this much until the accuracy is there.
constexpr double kStepDb = 4, kLastDb = 80;

}  // namespace

void Quantizer::leave() {
  const double before = now_.worst_db();
  const LeftMap had = plan_.left;
  if (options_.max_drop) {
    leave_by_accuracy();
  } else if (options_.min_sqnr) {
    summary_.reached = leave_float(&plan_, *trials_, sensitivity_, {.db = *options_.min_sqnr}).reached;
  } else if (enabled("leave-float")) {
    for (const LeaveTarget& target : kWorthIt) leave_float(&plan_, *trials_, sensitivity_, target);
  }
  if (plan_.left.size() == had.size()) return;
  now_ = trials_->measure(build(plan_).graph);
  summary_.techniques.push_back({"leave-float", fmt::format("{} operations", plan_.left.size() - had.size()),
                                 before, now_.worst_db(), true});
}

void Quantizer::leave_by_accuracy() {
  summary_.float_accuracy = options_.accuracy(exact_);
  const auto drop = [&] {
    summary_.accuracy = options_.accuracy(build(plan_).graph);
    return *summary_.float_accuracy - *summary_.accuracy;
  };
  // Binomial luck aside: compared as measured.
  constexpr double kRounding = 1e-9;
  double left = drop();
  for (double db = std::ceil(now_.worst_db()); left > *options_.max_drop + kRounding && db < kLastDb;) {
    db += kStepDb;
    const size_t had = plan_.left.size();
    const LeaveResult result = leave_float(&plan_, *trials_, sensitivity_, {.db = db});
    if (plan_.left.size() != had) left = drop();
    if (!result.reached && plan_.left.size() == had) break;
  }
  summary_.reached = left <= *options_.max_drop + kRounding;
}

}  // namespace sinter::convert
