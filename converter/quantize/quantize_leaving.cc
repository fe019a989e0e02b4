#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "converter/quantize/quantizer.h"
#include "converter/quantize/report/low_sqnr_outputs.h"

namespace sinter::convert {
namespace {

// Without a target: up to the SQNR on the left as much time, and as many operations, as behind it.
constexpr LeaveTarget kWorthIt[] = {{24}, {28, 0.5, 0.4}, {32, 0.1, 0.15}, {40, 0.03, 0.06}};
// With max_drop: the SQNR is raised by this much until the accuracy is reached.
constexpr double kStepDb = 4, kLastDb = 80;
// With min_sqnr and judges: by what is missing there, and this much at least.
constexpr double kLeastStepDb = 1, kLastJudgedDb = 240;

}  // namespace

void Quantizer::leave() {
  // Where integers are required, at any cost, and where memory decides, 16 bits come first.
  const bool wanted = options_.force_int8 || options_.require_int8;
  if ((wanted || plan_.left.memory_decides()) && !fine_.empty()) leave_by(Remedy::kWide);
  const bool asked = options_.min_sqnr || options_.max_drop;
  if (asked && wanted && !fine_.empty() && summary_.reached) return;
  leave_by(wanted ? Remedy::kFloat : Remedy::kCheaper);
}

void Quantizer::leave_by(Remedy remedy) {
  const double before = now_.worst_db();
  const size_t left = plan_.left.size(), wide = plan_.wide.size();
  const MeasurePlan measure = [&](const QuantizationPlan& plan) { return foresee(plan, fewer_); };
  size_t targets = std::size(kWorthIt);  // still to come
  double each = kUsualTrialsOfTarget;
  const auto expect = [&](double trials) {
    // Where one target is not reached at first, the higher ones are not, either.
    each = std::max(each, trials / 2);
    const double all = trials + each * static_cast<double>(targets);
    work_.expect(phase::kLeavingFloat, Work::kTrial, trial_units(fewer_) * all);
    work_.expect(phase::kLeavingFloat, Work::kChoosing,
                 trials > 0 || each > kUsualTrialsOfTarget ? all / 2 : 0);
  };
  const auto reach = [&](const LeaveTarget& target) {
    targets -= targets > 0 ? 1 : 0;
    return leave_float(&plan_, *trials_, measure, sensitivity_, fine_, remedy, target, expect).reached;
  };
  if (options_.max_drop) {
    leave_by_accuracy(reach);
  } else if (options_.min_sqnr && has_judges()) {
    leave_by_judges(reach);
  } else if (options_.min_sqnr) {
    summary_.reached = reach({.db = *options_.min_sqnr});
  } else if (remedy == Remedy::kWide || may_leave_float_) {
    for (const LeaveTarget& target : kWorthIt) {
      reach(target);
      // The others are not worth a refusal, nor memory.
      if (remedy == Remedy::kFloat && options_.require_int8) break;
      if (plan_.left.memory_decides() && !options_.force_int8) break;
    }
  }
  if (plan_.left.size() == left && plan_.wide.size() == wide) return;
  now_ = foresee(plan_, few_);
  std::string what;
  if (plan_.left.size() > left) what = fmt::format("{} operations", plan_.left.size() - left);
  if (plan_.wide.size() > wide)
    what += fmt::format("{}{} values of 16 bits", what.empty() ? "" : ", ", plan_.wide.size() - wide);
  const Technique& used = remedy == Remedy::kWide ? technique::kWideActivations : technique::kLeaveFloat;
  summary_.techniques.push_back({used.name, what, before, now_.worst_db(), true});
}

void Quantizer::leave_by_accuracy(const std::function<bool(const LeaveTarget&)>& reach) {
  if (!summary_.float_accuracy) summary_.float_accuracy = options_.accuracy(exact_);
  const auto drop = [&] {
    summary_.accuracy = options_.accuracy(build(plan_).graph);
    return *summary_.float_accuracy - *summary_.accuracy;
  };
  // Binomial luck aside: compared as measured.
  constexpr double kRounding = 1e-9;
  double lost = drop();
  for (double db = std::ceil(now_.worst_db()); lost > *options_.max_drop + kRounding && db < kLastDb;) {
    db += kStepDb;
    const size_t had = plan_.left.size() + plan_.wide.size();
    const bool reached = reach({.db = db});
    const bool changed = plan_.left.size() + plan_.wide.size() != had;
    if (changed) lost = drop();
    if (!reached && !changed) break;
  }
  summary_.reached = lost <= *options_.max_drop + kRounding;
}

void Quantizer::leave_by_judges(const std::function<bool(const LeaveTarget&)>& reach) {
  double missing = *options_.min_sqnr - judge(build(plan_).graph);
  for (double db = now_.worst_db(); missing > 0 && db < kLastJudgedDb;) {
    db += std::max(missing, kLeastStepDb);
    const size_t had = plan_.left.size() + plan_.wide.size();
    const bool reached = reach({.db = db});
    const bool changed = plan_.left.size() + plan_.wide.size() != had;
    if (changed) missing = *options_.min_sqnr - judge(build(plan_).graph);
    if (!reached && !changed) break;
  }
  summary_.reached = missing <= 0;
}

}  // namespace sinter::convert
