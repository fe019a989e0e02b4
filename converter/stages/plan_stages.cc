// Each target gets a plan of all entries, and the file is written.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "converter/emit/debug_lines.h"
#include "converter/ir/deep_copy.h"
#include "converter/plan/choose_winograd.h"
#include "converter/plan/common_state.h"
#include "converter/stages/conversion.h"
#include "converter/target/target_names.h"
#include "converter/target/target_platforms.h"
#include "runtime/backend/backend.h"

namespace sinter::convert {
namespace {

std::string does_not_fit(const FittedPlan& fitted, uint64_t limit) {
  std::string how = "and computing steps in stripes of rows does not reduce it";
  if (const size_t groups = fitted.stripes.size(); groups > 0)
    how = fmt::format("with {} group{} of steps in stripes of rows and {:.0f} % more work", groups,
                      groups == 1 ? "" : "s", 100 * fitted.extra_work);
  return fmt::format(
      "--max-arena {}: the smallest arena found has {} bytes, {}; '{}' needs the most. Allow this size, or "
      "make the model's input smaller",
      limit, fitted.model.programs.front().arena_bytes, how, fitted.fullest);
}

// nullopt: no plan fits --max-arena, and report.withheld states so.
std::optional<PlannedModel> plan_for(const Target& target, std::shared_ptr<Graph> graph,
                                     const ConversionOptions& options, ConversionReport& report) {
  PlanOptions plan_options;
  plan_options.target = target;
  plan_options.overlap = platforms_for(target).empty();
  plan_options.platforms = platforms_to_plan(target, options);
  plan_options.stored_weights = options.stored_weights;
  plan_options.thorough = true;
  plan_options.effort = options.plan_effort;
  plan_options.seconds = options.plan_seconds;
  if (options.max_arena) plan_options.thread_arena = *options.max_arena;
  if (options.winograd) {
    // With a limit only as long as whole steps fit: the rows of a stripe would be on other tiles, and give
    // other bits.
    std::shared_ptr<Graph> permitted = options.max_arena ? deep_copy(*graph) : graph;
    if (choose_winograd(*permitted, plan_options) > 0 && options.max_arena) {
      PlannedModel whole = plan_model(std::move(permitted), plan_options);
      if (whole.programs.front().arena_bytes <= *options.max_arena) return whole;
    }
  }
  if (!options.max_arena) return plan_model(std::move(graph), plan_options);
  FittedPlan fitted = plan_to_fit(*graph, plan_options, *options.max_arena);
  if (!fitted.fits) {
    report.withheld = does_not_fit(fitted, *options.max_arena);
    return std::nullopt;
  }
  if (report.stripes.empty())
    report.stripes = std::move(fitted.stripes), report.extra_work = fitted.extra_work;
  return std::move(fitted.model);
}

// The number of steps of the first entry, with those of its bodies.
size_t step_count(const PlannedModel& plan) {
  const size_t end = plan.entries.size() > 1 ? plan.entries[1] : plan.programs.size();
  size_t count = 0;
  for (size_t p = 0; p < end; ++p) count += plan.programs[p].steps.size();
  return count;
}

void describe_plan(const PlannedModel& plan, ConversionReport& report) {
  report.steps = step_count(plan);
  for (const PlannedProgram& program : plan.programs)
    report.elided_steps += static_cast<size_t>(std::count_if(program.steps.begin(), program.steps.end(),
                                                             [](const PlannedStep& s) { return s.elided; }));
  const PlannedProgram& entry = plan.programs.front();
  report.multiply_adds = multiply_adds(*entry.graph);
  report.arena_bytes = entry.arena_bytes;
  report.arena_lower_bound = entry.lower_bound;
  report.given_order_arena_bytes = entry.given_order_bytes;
  report.order_proved = entry.order_proved;
  for (const GraphState& s : entry.graph->states) {
    const Value& v = entry.graph->value(entry.graph->inputs[s.input]);
    report.states.push_back(
        {s.input_name, s.output_name, v.dtype, v.dims, dense_bytes(v.dtype, v.dims), entry.in_place(s)});
  }
}

// The plan of all entries for one target, with the states of all at the same places. nullopt: one of them
// does not fit --max-arena, or a state cannot be shared; report.withheld states it. The report describes the
// first target's.
std::optional<PlannedModel> plan_entries(Conversion& c, size_t number) {
  const ConversionOptions& options = c.options;
  const Target& target = options.targets[number];
  const bool first = number == 0, last = number + 1 == options.targets.size();
  const auto withhold = [&](size_t entry, std::string why) -> std::optional<PlannedModel> {
    c.report.withheld = c.entries[entry].shapes.empty()
                            ? std::move(why)
                            : fmt::format("with --shapes \"{}\": {}", c.entries[entry].shapes, why);
    return std::nullopt;
  };
  std::vector<PlannedModel> plans;
  for (size_t i = 0; i < c.entries.size(); ++i) {
    Graph& own = c.entries[i].graph;
    std::optional<PlannedModel> plan =
        plan_for(target, last ? std::make_shared<Graph>(std::move(own)) : deep_copy(own), options, c.report);
    if (!plan) return withhold(i, std::move(c.report.withheld));
    plans.push_back(std::move(*plan));
  }
  c.report.withheld = give_states_common_places(plans);
  if (!c.report.withheld.empty()) return std::nullopt;
  for (size_t i = 0; i < plans.size(); ++i) {
    const PlannedProgram& entry = plans[i].programs.front();
    if (options.max_arena && entry.arena_bytes > *options.max_arena)
      return withhold(i, fmt::format("--max-arena {}: the arena has {} bytes where all shape sets have their "
                                     "states at the same places; allow this size",
                                     *options.max_arena, entry.arena_bytes));
    if (first && !c.entries[i].shapes.empty())
      c.report.entries.push_back(
          {c.entries[i].shapes, step_count(plans[i]), total(multiply_adds(*entry.graph)), entry.arena_bytes});
  }
  if (first) {
    describe_plan(plans.front(), c.report);
    if (options.details) c.report.plan = std::make_shared<const PlannedModel>(plans.front());
  }
  PlannedModel all = std::move(plans.front());
  for (size_t i = 1; i < plans.size(); ++i) add_entry(all, std::move(plans[i]));
  return all;
}

bool fits_any_machine(const std::string& target) {
  std::string fault;
  const std::optional<Target> parsed = parse_target(target, &fault);
  return parsed && parsed->architecture == Architecture::kPortable;
}

}  // namespace

std::vector<const Platform*> platforms_to_plan(const Target& target, const ConversionOptions& options) {
  std::vector<const Platform*> platforms = platforms_serving(target);
  const auto is_built = [&](const Platform& p) {
    return std::any_of(options.backends.begin(), options.backends.end(),
                       [&](const Backend* b) { return std::string_view(b->name()) == p.name; });
  };
  std::erase_if(platforms, [&](const Platform* p) {
    if (options.plan_backends)
      return std::find(options.plan_backends->begin(), options.plan_backends->end(), p->name) ==
             options.plan_backends->end();
    // A plan for this machine is for this program.
    if (options.native_target == target) return !is_built(*p);
    if (options.prefer != nullptr && computes_half(*p, target, options.prefer->dtype)) return false;
    return p->on_request;
  });
  return platforms;
}

bool plan(Conversion& c) {
  for (Entry& entry : c.entries) compact_values(entry.graph);
  c.report.ledger = c.graph().ledger;
  for (size_t i = 0; i < c.options.targets.size(); ++i) {
    std::optional<PlannedModel> plan = plan_entries(c, i);
    if (!plan) return true;
    c.plans.push_back(std::move(*plan));
  }
  // Sessions take the first that fits their machine.
  std::stable_sort(c.plans.begin(), c.plans.end(), [](const PlannedModel& a, const PlannedModel& b) {
    return fits_any_machine(a.target) < fits_any_machine(b.target);
  });
  for (const PlannedModel& plan : c.plans)
    c.report.profiles.push_back({plan.target, step_count(plan), plan.programs.front().arena_bytes});
  return true;
}

bool write(Conversion& c) {
  EmitOptions emit = c.options.emit;
  emit.texts = c.report.texts;
  emit.debug_text =
      to_lines(*c.report.ledger) + to_lines(c.report.fates, *c.plans.front().programs.front().graph);
  if (!c.options.file_stages.empty())
    emit.check = [&](const std::filesystem::path& file) {
      for (const FileStage& stage : c.options.file_stages) stage({file, c.plans, c.lowerings});
    };
  c.report.file = emit_model(c.plans, c.out, emit);
  return true;
}

}  // namespace sinter::convert
