#include "converter/cli/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "converter/diagnostics/errors.h"
#include "runtime/model/format.h"

namespace sinter::convert {
namespace {

constexpr double kMinGain = 0.05, kMinGainNs = 100;

const fb::StepPlan* plan_of(const fb::Profile& profile, uint32_t program, uint32_t step) {
  const fb::ProgramPlan* plan = detail::find_plan(profile, program);
  return plan != nullptr && step < detail::length(plan->steps()) ? plan->steps()->Get(step) : nullptr;
}

}  // namespace

std::vector<KernelChoice> choose_kernels(const FileView& view, const std::vector<StepTime>& times) {
  std::map<std::pair<uint32_t, uint32_t>, std::map<std::string, double>> by_step;
  for (const StepTime& t : times) by_step[{t.program, t.step}][t.backend] = t.nanoseconds;
  std::vector<KernelChoice> choices;
  for (const auto& [key, known] : by_step) {
    const fb::StepPlan* plan = plan_of(view.profile(), key.first, key.second);
    if (plan == nullptr)
      throw DataError(
          fmt::format("the file has no step {} in program {}; measure this file", key.second, key.first));
    const std::vector<std::string> candidates = view.candidates(*plan);
    if (candidates.size() < 2 || known.count(candidates[0]) == 0) continue;
    KernelChoice choice{key.first,
                        key.second,
                        candidates[0],
                        candidates[0],
                        known.at(candidates[0]),
                        known.at(candidates[0])};
    for (const std::string& name : candidates)
      if (const auto at = known.find(name); at != known.end() && at->second < choice.chosen_ns)
        choice.chosen = name, choice.chosen_ns = at->second;
    if (choice.chosen_ns + std::max(kMinGain * choice.planned_ns, kMinGainNs) < choice.planned_ns)
      choices.push_back(choice);
  }
  return choices;
}

std::vector<std::byte> with_choices(const LoadedModel& loaded, uint32_t profile,
                                    const std::vector<KernelChoice>& choices) {
  const std::span<const std::byte> file = loaded.file();
  const auto header = format::read_header(file);
  if (!header.ok()) throw ModelFileError(header.status().message);
  const auto envelope =
      format::read_envelope(file, file.first(static_cast<size_t>(format::head_bytes(header.value()))));
  if (!envelope.ok()) throw ModelFileError(envelope.status().message);
  const std::span<const std::byte> structure = envelope.value().flatbuffer;
  std::vector<std::byte> bytes(structure.begin(), structure.end());
  const fb::Profile& changed = *fb::GetModel(bytes.data())->profiles()->Get(profile);
  std::set<const uint8_t*> done;  // lists, which a foreign writer may have shared between steps
  for (const KernelChoice& choice : choices) {
    const fb::StepPlan* plan = plan_of(changed, choice.program, choice.step);
    const auto* list = plan != nullptr ? plan->candidates() : nullptr;
    if (list == nullptr || !done.insert(list->data()).second) continue;
    uint8_t* first = reinterpret_cast<uint8_t*>(bytes.data()) +
                     (list->data() - reinterpret_cast<const uint8_t*>(bytes.data()));
    uint8_t* chosen = std::find_if(first, first + list->size(), [&](uint8_t i) {
      return changed.backends()->Get(i)->str() == choice.chosen;
    });
    if (chosen != first + list->size()) std::rotate(first, chosen, chosen + 1);
  }
  return bytes;
}

}  // namespace sinter::convert
