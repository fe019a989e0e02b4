// FileView: a file's tables with names resolved, for commands that show what is in it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "converter/ir/graph.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {

class FileView {
 public:
  explicit FileView(const Model& model) : root_(*model.state()->root) {}
  const fb::Model& root() const { return root_; }
  const fb::Profile& profile() const { return *root_.profiles()->Get(0); }

  std::string name(int32_t index) const {
    const auto* names = root_.debug() != nullptr ? root_.debug()->names() : nullptr;
    return names != nullptr && index >= 0 && static_cast<uint32_t>(index) < names->size()
               ? names->Get(static_cast<uint32_t>(index))->str()
               : "";
  }
  std::string origin(int32_t index) const {
    const auto* list = root_.debug() != nullptr ? root_.debug()->origins() : nullptr;
    return list != nullptr && index >= 0 && static_cast<uint32_t>(index) < list->size()
               ? list->Get(static_cast<uint32_t>(index))->str()
               : "";
  }
  std::string value(const fb::Program& program, int32_t id) const {
    if (id < 0) return "-";
    const fb::Value& v = *program.values()->Get(static_cast<uint32_t>(id));
    const std::string n = name(v.name());
    return n.empty() ? fmt::format("%{}", id) : n;
  }
  static std::string type(const fb::Value& v) {
    const auto dims = detail::items(v.dims());
    return to_string(static_cast<DType>(v.dtype()), Dims(dims.begin(), dims.end()));
  }
  std::vector<std::string> candidates(const fb::StepPlan& plan) const {
    std::vector<std::string> out;
    for (uint32_t i = 0; i < detail::length(plan.candidates()); ++i)
      out.push_back(profile().backends()->Get(plan.candidates()->Get(i))->str());
    return out;
  }
  // "host", or the backend whose memory it is.
  std::string memory(uint8_t kind) const {
    if (kind == 0) return "host";
    return kind <= detail::length(profile().backends()) ? profile().backends()->Get(kind - 1u)->str() : "?";
  }
  std::string region_memory(uint32_t region) const {
    return memory(profile().regions()->Get(region)->memory_kind());
  }
  // The place of a value of the entry program; empty: it has none there.
  std::string value_memory(int32_t id) const {
    const auto* all = profile().programs()->Get(0)->placements();
    for (uint32_t i = 0; i < detail::length(all); ++i)
      if (static_cast<int32_t>(all->Get(i)->value()) == id) return region_memory(all->Get(i)->region());
    return {};
  }

 private:
  const fb::Model& root_;
};

}  // namespace sinter::convert
