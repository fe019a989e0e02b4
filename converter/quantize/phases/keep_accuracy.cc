// Operations that are kept in float, and values that get 16 bits, for the accuracy of the outputs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "converter/quantize/quantization.h"

namespace sinter::convert {
namespace {

// Without a target: up to the SQNR on the left as much time, and as many operations, as behind it.
constexpr LeaveTarget kWorthIt[] = {{24}, {28, 0.5, 0.4}, {32, 0.1, 0.15}, {40, 0.03, 0.06}};
// With max_drop: the SQNR is raised by this much until the accuracy is reached.
constexpr double kStepDb = 4, kLastDb = 80;
// With min_sqnr and judges: by what is missing there, and this much at least.
constexpr double kLeastStepDb = 1, kLastJudgedDb = 240;

using Reach = std::function<bool(const LeaveTarget&)>;

// Raises the SQNR, by as much as `step` says of what is missing, until missing() is not positive. Returns
// whether it is reached.
bool raise_until(Quantization& q, const Reach& reach, double db, double last,
                 const std::function<double()>& missing, const std::function<double(double)>& step) {
  double left = missing();
  const auto changes = [&] { return q.plan.left.size() + q.plan.wide.size(); };
  while (left > 0 && db < last) {
    db += step(left);
    const size_t had = changes();
    const bool reached = reach({.db = db}), changed = changes() != had;
    if (changed) left = missing();
    if (!reached && !changed) break;
  }
  return left <= 0;
}

bool reach_accuracy(Quantization& q, const Reach& reach) {
  if (!q.summary.float_accuracy) q.summary.float_accuracy = q.options.accuracy(q.exact);
  const auto missing = [&] {
    constexpr double kRounding = 1e-9;  // binomial luck aside: compared as measured
    q.summary.accuracy = q.options.accuracy(build(q.plan).graph);
    return *q.summary.float_accuracy - *q.summary.accuracy - (*q.options.max_drop + kRounding);
  };
  return raise_until(q, reach, std::ceil(q.now_db), kLastDb, missing, [](double) { return kStepDb; });
}

bool reach_judged_sqnr(Quantization& q, const Reach& reach) {
  return raise_until(
      q, reach, q.now_db, kLastJudgedDb,
      [&] { return *q.options.min_sqnr - q.judged_db(build(q.plan).graph); },
      [](double missing) { return std::max(missing, kLeastStepDb); });
}

void keep_accuracy_by(Quantization& q, Remedy remedy) {
  const QuantizeOptions& options = q.options;
  const size_t left = q.plan.left.size(), wide = q.plan.wide.size();
  const MeasurePlan measure = [&](const QuantizationPlan& plan) { return q.foresee(plan, q.fewer); };
  size_t targets = std::size(kWorthIt);  // still to come
  double each = kUsualTrialsOfTarget;
  const auto expect = [&](double trials) {
    // Where one target is not reached at first, the higher ones are not, either.
    each = std::max(each, trials / 2);
    const double all = trials + each * static_cast<double>(targets);
    q.work.expect(phase::kLeavingFloat, Work::kTrial, trial_units(q.fewer) * all);
    q.work.expect(phase::kLeavingFloat, Work::kChoosing,
                  trials > 0 || each > kUsualTrialsOfTarget ? all / 2 : 0);
  };
  const Reach reach = [&](const LeaveTarget& target) {
    targets -= targets > 0 ? 1 : 0;
    return leave_float(&q.plan, *q.trials, measure, q.sensitivity, q.fine, remedy, target, expect).reached;
  };
  if (options.max_drop) {
    q.summary.reached = reach_accuracy(q, reach);
  } else if (options.min_sqnr) {
    q.summary.reached = q.has_judges() ? reach_judged_sqnr(q, reach) : reach({.db = *options.min_sqnr});
  } else if (remedy == Remedy::kWide || q.uses(technique::kLeaveFloat)) {
    for (const LeaveTarget& target : kWorthIt) {
      reach(target);
      // The others are not worth a refusal, nor memory.
      if (remedy == Remedy::kFloat && options.require_int8) break;
      if (q.plan.left.memory_decides() && !options.force_int8) break;
    }
  }
  if (q.plan.left.size() == left && q.plan.wide.size() == wide) return;
  const double before = q.now_db;
  q.now_db = q.foresee(q.plan, q.few).worst_db();
  std::string what;
  if (q.plan.left.size() > left) what = fmt::format("{} operations", q.plan.left.size() - left);
  if (q.plan.wide.size() > wide)
    what += fmt::format("{}{} values of 16 bits", what.empty() ? "" : ", ", q.plan.wide.size() - wide);
  const Technique& used = remedy == Remedy::kWide ? technique::kWideActivations : technique::kLeaveFloat;
  q.summary.techniques.push_back({used.name, what, before, q.now_db, true});
}

}  // namespace

void keep_accuracy(Quantization& q) {
  // Where integers are required, at any cost, and where memory decides, 16 bits come first.
  const bool wanted = q.plan.left.asks_for_integers();
  if ((wanted || q.plan.left.memory_decides()) && !q.fine.empty()) keep_accuracy_by(q, Remedy::kWide);
  const bool asked = q.options.min_sqnr || q.options.max_drop;
  if (asked && wanted && !q.fine.empty() && q.summary.reached) return;
  keep_accuracy_by(q, wanted ? Remedy::kFloat : Remedy::kCheaper);
}

}  // namespace sinter::convert
