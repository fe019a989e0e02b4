#include "converter/cli/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "converter/diagnostics/errors.h"
#include "runtime/model/format.h"

namespace sinter::convert {
namespace {

constexpr double kMinGain = 0.05, kMinGainNs = 100;

const fb::StepPlan* plan_of(const fb::Profile& profile, uint32_t program, uint32_t step) {
  const fb::ProgramPlan* plan = detail::find_plan(profile, program);
  return plan != nullptr && step < detail::length(plan->steps()) ? plan->steps()->Get(step) : nullptr;
}

// A FlatBuffer that grows at its end, to which all of it can refer, because references point forwards.
class GrowingBuffer {
 public:
  explicit GrowingBuffer(std::span<const std::byte> buffer) : bytes_(buffer.begin(), buffer.end()) {}
  const std::byte* data() const { return bytes_.data(); }
  size_t place_of(const void* at) const {
    return static_cast<size_t>(static_cast<const std::byte*>(at) - bytes_.data());
  }
  // Appends a copy of the table at `from` whose list of bytes `field` is `list`, and returns its place. The
  // table may refer to no other list or table: the copy is behind all of them, and could not refer to them.
  size_t copy_with_list(size_t from, flatbuffers::voffset_t field, const std::vector<uint8_t>& list) {
    const size_t vtable = from - static_cast<size_t>(read<flatbuffers::soffset_t>(from));
    const size_t size = read<flatbuffers::voffset_t>(vtable + sizeof(flatbuffers::voffset_t));
    constexpr size_t kAlignment = 8;  // the widest number; the copy has the table's distance from a multiple
    const size_t to = align_up(bytes_.size(), kAlignment) + from % kAlignment;
    bytes_.resize(to + size);
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(from), size,
                bytes_.begin() + static_cast<ptrdiff_t>(to));
    write(to,
          static_cast<flatbuffers::soffset_t>(static_cast<ptrdiff_t>(to) - static_cast<ptrdiff_t>(vtable)));
    const size_t items = align_up(bytes_.size(), sizeof(flatbuffers::uoffset_t));
    bytes_.resize(align_up(items + sizeof(flatbuffers::uoffset_t) + list.size(), kAlignment));
    write(items, static_cast<flatbuffers::uoffset_t>(list.size()));
    std::memcpy(bytes_.data() + items + sizeof(flatbuffers::uoffset_t), list.data(), list.size());
    refer(to + read<flatbuffers::voffset_t>(vtable + field), items);
    return to;
  }
  void refer(size_t reference, size_t to) {
    write(reference, static_cast<flatbuffers::uoffset_t>(to - reference));
  }
  std::vector<std::byte> bytes() && { return std::move(bytes_); }

 private:
  template <class T>
  T read(size_t at) const {
    return flatbuffers::ReadScalar<T>(bytes_.data() + at);
  }
  template <class T>
  void write(size_t at, T value) {
    flatbuffers::WriteScalar(bytes_.data() + at, value);
  }
  std::vector<std::byte> bytes_;
};

}  // namespace

std::vector<KernelChoice> choose_kernels(const FileView& view, const std::vector<StepTime>& times) {
  std::map<std::pair<uint32_t, uint32_t>, std::map<std::string, StepTime>> by_step;
  for (const StepTime& t : times) by_step[{t.program, t.step}][t.backend] = t;
  std::vector<KernelChoice> choices;
  for (const auto& [key, known] : by_step) {
    const fb::StepPlan* plan = plan_of(view.profile(), key.first, key.second);
    if (plan == nullptr)
      throw DataError(
          fmt::format("the file has no step {} in program {}; measure this file", key.second, key.first));
    const std::vector<std::string> candidates = view.candidates(*plan);
    // The session itself computes control steps.
    if (candidates.size() < 2 || plan->device_workspaces() != nullptr || known.count(candidates[0]) == 0)
      continue;
    KernelChoice choice{known.at(candidates[0]), known.at(candidates[0])};
    for (const std::string& name : candidates)
      if (const auto at = known.find(name);
          at != known.end() && at->second.nanoseconds < choice.chosen.nanoseconds)
        choice.chosen = at->second;
    const double before = choice.planned.nanoseconds;
    if (choice.chosen.nanoseconds + std::max(kMinGain * before, kMinGainNs) < before)
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
  GrowingBuffer buffer(envelope.value().flatbuffer);
  std::map<std::pair<size_t, std::string>, size_t> copies;  // by the original and its first candidate
  for (const KernelChoice& choice : choices) {
    const fb::Profile& changed = *fb::GetModel(buffer.data())->profiles()->Get(profile);
    const fb::StepPlan* plan = plan_of(changed, choice.planned.program, choice.planned.step);
    std::vector<uint8_t> order(plan->candidates()->begin(), plan->candidates()->end());
    const auto chosen = std::find_if(order.begin(), order.end(), [&](uint8_t i) {
      return changed.backends()->Get(i)->str() == choice.chosen.backend;
    });
    if (chosen == order.end())
      throw std::logic_error(fmt::format("'{}' is not a candidate of the step", choice.chosen.backend));
    std::rotate(order.begin(), chosen, chosen + 1);
    const size_t reference =
        buffer.place_of(detail::find_plan(changed, choice.planned.program)->steps()->Data()) +
        sizeof(flatbuffers::uoffset_t) * choice.planned.step;
    const size_t original = buffer.place_of(plan);
    const auto [at, fresh] = copies.emplace(std::pair(original, choice.chosen.backend), 0);
    if (fresh) at->second = buffer.copy_with_list(original, fb::StepPlan::VT_CANDIDATES, order);
    buffer.refer(reference, at->second);
  }
  return std::move(buffer).bytes();
}

}  // namespace sinter::convert
