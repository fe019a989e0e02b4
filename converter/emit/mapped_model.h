// The file of a planned model in memory, for runs during the conversion. Its large constants are pages of
// files that have them already, so that a run of a changed graph writes only constants that have changed.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "converter/ir/assembled_bytes.h"
#include "converter/ir/large_bytes.h"
#include "converter/plan/planned_model.h"

namespace sinter::convert {

// A function that returns the bytes of a large constant at a page (begins_at_page()); others are copied.
using BytesAtPage = std::function<HeldBytes(const ConstantPtr&)>;

// It is opened as a file, but without digests of segments. Its first byte is aligned to format::kAlignment.
class MappedModel {
 public:
  MappedModel() = default;
  MappedModel(const PlannedModel& plan, const BytesAtPage& at_page);
  std::span<const std::byte> bytes() const { return bytes_; }
  // Returns the constant whose bytes begin at this address of bytes(); null if there is none.
  ConstantPtr constant_at(const std::byte* address) const;

 private:
  std::unique_ptr<AssembledBytes> memory_;
  std::span<const std::byte> bytes_;
  std::map<const std::byte*, ConstantPtr> constants_;
};

}  // namespace sinter::convert
