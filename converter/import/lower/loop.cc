// Loop: planned, or unrolled where that cannot be.
#include <algorithm>
#include <set>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/control.h"
#include "converter/ir/dims.h"

namespace sinter::convert {
namespace {

// Iterations that may be unrolled because everything is constant and folds away, or a sequence is carried.
constexpr int64_t kMostFolded = 4096;

// Runs the body up to `trips` times in the enclosing graph. nullopt: a condition is not known, or still true
// after that many trips although it `must_stop`.
std::optional<std::vector<ValueId>> unrolled_loop(NodeLowering& n, const ImportedGraph& source, int64_t trips,
                                                  bool must_stop, std::optional<bool> condition,
                                                  std::vector<ValueId> carried) {
  const size_t count = carried.size(), scans = source.outputs.size() - 1 - count;
  std::vector<std::vector<ValueId>> scanned(scans);
  bool go = condition.value_or(true);
  for (int64_t i = 0; i < trips && go; ++i) {
    std::vector<ValueId> parameters{n.int64(i), n.add_constant(Constant::scalar_int(DType::kBool, 1))};
    parameters.insert(parameters.end(), carried.begin(), carried.end());
    const std::vector<ValueId> results = n.parent().inline_body(source, parameters);
    if (std::find(results.begin(), results.end(), kUnknown) != results.end()) return std::vector<ValueId>{};
    const auto next = known_truth(n, results[0]);
    if (!next) return std::nullopt;
    go = *next;
    for (size_t c = 0; c < count; ++c) carried[c] = results[1 + c];
    for (size_t s = 0; s < scans; ++s) scanned[s].push_back(results[1 + count + s]);
  }
  if (go && must_stop) return std::nullopt;
  std::vector<ValueId> out = carried;
  for (const auto& items : scanned) {
    if (items.empty()) {
      n.refuse("a scanned result of no iterations has no shape");
      return std::vector<ValueId>{};
    }
    out.push_back(stack(n, items));
  }
  return out;
}

// The limit of a loop's trips.
struct Trips {
  std::optional<int64_t> number;  // known at conversion
  std::optional<int64_t> most;    // otherwise: by --max-trips, or the end of its range
  std::optional<bool> condition;  // the first one
};

std::optional<Trips> trips_of(NodeLowering& n) {
  Trips trips;
  Lengths& lengths = n.parent().lengths();
  if (n.has_input(0) && (n.constant(n.input(0)) || lengths.known_items(n.input(0)))) {
    const auto given = n.constant_int(0);
    if (!given) return std::nullopt;
    trips.number = std::max<int64_t>(0, *given);
  }
  trips.condition = n.has_input(1) ? known_truth(n, n.input(1)) : std::optional<bool>(true);
  if (trips.condition == false) trips.number = 0;
  if (trips.number) return trips;
  const auto& limits = n.parent().options().max_trips;
  if (const auto limit = limits.find(n.node().name); limit != limits.end()) {
    trips.most = limit->second;
    return trips;
  }
  // A number of trips that depends on data may have a maximum.
  const auto count = n.has_input(0) ? lengths.items(n.input(0)) : std::nullopt;
  if (count && count->size() == 1 && lengths.high(count->front()) < Lengths::kNoMaximum)
    trips.most = std::max<int64_t>(0, lengths.high(count->front()));
  return trips;
}

// Filed without ending this node as n.refuse() does: a trial continues after it.
bool refuse_unbounded(NodeLowering& n) {
  n.parent().diagnostics().refuse(n.node().name, n.node().op_type,
                                  "its trip count is not known at conversion",
                                  fmt::format("give the maximum with --max-trips {}=N", n.node().name));
  return false;
}

// Plans the loop for all its trips. nullopt: it cannot be (reasons in `reasons`).
std::optional<std::vector<ValueId>> planned(NodeLowering& n, const ImportedGraph& source, const Trips& trips,
                                            PlannedLoop& loop, Diagnostics& reasons) {
  loop.max_trips = trips.number ? *trips.number : trips.most.value_or(n.parent().options().assumed);
  loop.may_grow |= !(trips.number && *trips.number <= kMostUnrolled && trips.condition);
  if (trips.number)
    loop.trips = n.int64(*trips.number);
  else
    loop.trips = n.has_input(0) ? n.reshape(n.cast(n.input(0), DType::kInt64), {}) : kAbsent;
  if (n.has_input(1) && !trips.condition) {
    if (n.size(n.input(1)) != 1) {
      n.refuse("the condition has {} elements, not one", n.size(n.input(1)));
      return std::nullopt;
    }
    warn_of_fraction(n, fmt::format("its condition ('{}')", n.node().inputs[1]), n.parent().graph(),
                     n.input(1));
    loop.condition = n.reshape(n.cast(n.input(1), DType::kBool), {});
  }
  // A body whose condition is the constant true, or the one it was given, never stops early.
  loop.known_start = trips.number.has_value() && trips.condition.has_value();
  loop.exact = loop.known_start && never_stops(source);
  return planned_loop(n, source, loop, reasons, {}, true);
}

// Loop-1 to 25. One that carries sequences is unrolled, and planned with stacks of them where it cannot be.
bool lower_loop(NodeLowering& n) {
  const ImportedGraph* source = n.attr_graph("body");
  if (source == nullptr) return n.refuse("has no body");
  for (size_t i = 0; i < n.input_count(); ++i)
    if (n.input(i) == kUnknown) return false;
  PlannedLoop loop;
  bool sequences = false, stacks = false;
  for (size_t i = 2; i < n.node().inputs.size(); ++i) {
    loop.carried.push_back(n.input(i));
    sequences |= is_sequence(loop.carried.back());
    stacks |= n.parent().stack(loop.carried.back()) != kAbsent;
  }
  if (source->inputs.size() != 2 + loop.carried.size() || source->outputs.size() < 1 + loop.carried.size())
    return n.refuse_shapes("its body takes {} values and gives {}, which does not match {} carried values",
                           source->inputs.size(), source->outputs.size(), loop.carried.size());
  for (const ImportedValueInfo& in : source->inputs) loop.names.push_back(in.name);
  const auto given = trips_of(n);
  if (!given) return false;
  const Trips& trips = *given;
  bool all_constant = trips.number.has_value() && trips.condition.has_value();
  for (const ValueId v : loop.carried) all_constant &= n.constant(v) != nullptr;
  const int64_t most = all_constant || sequences ? kMostFolded : kMostUnrolled;
  // A number of trips beyond `most` (exporters write the largest there is) may yet be cut short.
  const bool stops = trips.condition && (!trips.number || *trips.number > most) && !never_stops(*source) &&
                     condition_folds(n, *source, loop.carried);
  const bool unrolls =
      (all_constant && *trips.number <= kMostFolded) || sequences || (!trips.number && !trips.most && stops);
  Diagnostics reasons;
  const bool open = !trips.number && !trips.most, limited = !open || n.parent().options().assumed > 0;
  // nullopt: it cannot be planned.
  const auto plan = [&]() -> std::optional<bool> {
    if (open) refuse_unbounded(n);
    if (!limited) return false;
    const auto results = planned(n, *source, trips, loop, reasons);
    if (!results) return n.refused() ? std::optional(false) : std::nullopt;
    for (const Diagnostic& d : reasons.all()) n.parent().diagnostics().add(d);  // warnings of its body
    return give_results(n, *results);
  };
  if (!unrolls)
    if (const auto done = plan()) return *done;
  if (!stacks && trips.condition && ((trips.number && *trips.number <= most) || stops))
    if (const auto results =
            unrolled_loop(n, *source, std::min(trips.number.value_or(most), most),
                          !trips.number || *trips.number > most, trips.condition, loop.carried))
      return give_results(n, *results);
  if (sequences) {
    if (!limited) return refuse_unbounded(n);
    if (!stack_carried(n, *source, &loop)) return false;
    if (const auto done = plan()) return *done;
  } else if (unrolls && open) {
    return refuse_unbounded(n);
  }
  for (const Diagnostic& d : reasons.all()) n.parent().diagnostics().add(d);
  if (!loop.assumed.empty()) {  // refused above; a trial continues after it
    std::vector<ValueId> results;
    for (const ValueFact& f : loop.assumed)
      results.push_back(n.parent().graph().add_value({}, f.dtype, f.dims));
    return give_results(n, results);
  }
  return n.refuse("can be neither planned nor unrolled");
}

}  // namespace

std::span<const OnnxOperator> loop_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Loop", 1, lower_loop, "", kTakesBounded | kTakesUnknown | kCarriesSequences | kNoInput},
  };
  return kRules;
}

}  // namespace sinter::convert
