// A planned model as its file would be, in the memory of this process: for runs during the conversion. Its
// large constants are in the pages of the files that they are in already, so that a run of a changed graph
// writes only what has changed.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "converter/ir/assembled_bytes.h"
#include "converter/ir/large_bytes.h"
#include "converter/plan/planned_model.h"

namespace sinter::convert {

// The bytes of a large constant, at a page (begins_at_page()); elsewhere they are copied.
using BytesAtPage = std::function<HeldBytes(const ConstantPtr&)>;

// Opened as a file is, but for the digests of its segments, which it has not. Its first byte is aligned to
// format::kAlignment.
class MappedModel {
 public:
  MappedModel() = default;
  MappedModel(const PlannedModel& plan, const BytesAtPage& at_page);
  std::span<const std::byte> bytes() const { return bytes_; }
  // The constant whose bytes begin at this address of bytes(); null: none does.
  ConstantPtr constant_at(const std::byte* address) const;

 private:
  std::unique_ptr<AssembledBytes> memory_;
  std::span<const std::byte> bytes_;
  std::map<const std::byte*, ConstantPtr> constants_;
};

}  // namespace sinter::convert
