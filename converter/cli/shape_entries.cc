#include "converter/cli/shape_entries.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/cli/file_view.h"
#include "converter/cli/flags.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

// Returns "x float32[1,16], mask int64[1,16]".
std::string inputs_text(const Model& model, uint32_t entry) {
  std::string text;
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    const PortInfo port = model.input(i, entry);
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", port.name, input_type(model, i, entry));
  }
  return text;
}

// Whether the arrays are the inputs or, with `stacks`, stacks of samples of the inputs.
bool fits(const Model& model, uint32_t entry, const Arrays& arrays, bool stacks) {
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    const PortInfo port = model.input(i, entry);
    ConstantPtr array = find_array(arrays, port.name);
    if (!array && arrays.size() == 1 && model.input_count(entry) == 1) array = arrays.front().second;
    if (!array) continue;
    if (stacks ? !stacked_shape(model, i, entry, array->dims())
               : !model.takes({port.name, array->dims()}, entry))
      return false;
  }
  return true;
}

}  // namespace

void EntryFlag::add_to(CLI::App& command, const char* what) {
  add_value(command, "--entry", number, "N", what)->group(flag_group::kInput);
}

uint32_t EntryFlag::of(const Model& model) const {
  if (number.value_or(0) >= model.entry_count())
    throw UsageError(fmt::format("--entry {}: the file has {} shape set{}; sinter inspect lists them",
                                 *number, model.entry_count(), model.entry_count() == 1 ? "" : "s"));
  return number.value_or(0);
}

uint32_t EntryFlag::for_arrays(const Model& model, const Arrays* arrays, bool stacks) const {
  if (number || arrays == nullptr || model.entry_count() == 1) return of(model);
  for (const bool stacked : {false, true})
    for (uint32_t entry = 0; entry < model.entry_count() && (stacks || !stacked); ++entry)
      if (fits(model, entry, *arrays, stacked)) return entry;
  std::string given, sets;
  for (const auto& [name, array] : *arrays)
    given +=
        fmt::format("{}{} {}", given.empty() ? "" : ", ", name, to_string(array->dtype(), array->dims()));
  for (uint32_t entry = 0; entry < model.entry_count(); ++entry)
    sets += fmt::format("{}{}", entry == 0 ? "" : "; ", inputs_text(model, entry));
  throw DataError(fmt::format("no shape set of the file takes {}; give one of {}", given, sets));
}

SharedConstants::SharedConstants(const Model& model, uint32_t profile) {
  const fb::Model& root = *model.state()->root;
  std::vector<uint32_t> readers(detail::length(root.constants()));
  for (uint32_t entry = 0; entry < model.entry_count(); ++entry) {
    const FileView view(model, profile, entry);
    std::vector<bool> read(readers.size());
    for (const uint32_t p : view.programs())
      for (const fb::Value* value : *view.program(p).values())
        for (const int32_t c : {value->constant(), value->initial()})
          if (c >= 0) read[static_cast<size_t>(c)] = true;
    uint64_t& bytes = of_entry.emplace_back(0);
    for (uint32_t c = 0; c < readers.size(); ++c) {
      if (!read[c]) continue;
      ++readers[c];
      bytes += static_cast<uint64_t>(detail::bytes_in_file(*root.constants()->Get(c)));
    }
  }
  for (uint32_t c = 0; c < readers.size(); ++c)
    if (readers[c] > 1) shared += static_cast<uint64_t>(detail::bytes_in_file(*root.constants()->Get(c)));
}

nlohmann::json entries_json(const LoadedModel& loaded, uint32_t profile, const HostSession::Options& host) {
  const Model& model = loaded.model();
  const SharedConstants constants(model, profile);
  nlohmann::json list = nlohmann::json::array();
  for (uint32_t entry = 0; entry < model.entry_count(); ++entry) {
    HostSession::Options options = host;
    options.entry = entry;
    const HostSession session(loaded, options);
    nlohmann::json inputs = nlohmann::json::array();
    for (uint32_t i = 0; i < model.input_count(entry); ++i) {
      const PortInfo port = model.input(i, entry);
      inputs.push_back({{"name", port.name},
                        {"type", dtype_name(port.dtype)},
                        {"shape", std::vector<int64_t>(port.dims.begin(), port.dims.end())}});
    }
    list.push_back({{"entry", entry},
                    {"inputs", inputs},
                    {"text", inputs_text(model, entry)},
                    {"steps", model.step_count(model.entry_program(entry, profile))},
                    {"arena_bytes", session.requirements().arena},
                    {"state_bytes", session.requirements().state},
                    {"session_bytes", session.requirements().bytes},
                    {"sharing_session_bytes", session.sharing().session},
                    {"weight_bytes", constants.of_entry[entry]}});
  }
  return list;
}

CommonMemory::CommonMemory(const nlohmann::json& entries) {
  for (const auto& e : entries) {
    const auto own_state = e["state_bytes"].get<uint64_t>();
    state = std::max(state, own_state);
    arena = std::max(arena, e["arena_bytes"].get<uint64_t>() - own_state);
  }
}

std::string entries_text(const nlohmann::json& entries) {
  std::string text;
  for (const auto& e : printable_json(entries))
    text += fmt::format("shapes    {}: {}  {} steps, arena {} bytes, session {} bytes\n", e["entry"].dump(),
                        e["text"].get<std::string>(), e["steps"].dump(), e["arena_bytes"].dump(),
                        e["session_bytes"].dump());
  return text;
}

}  // namespace sinter::convert
