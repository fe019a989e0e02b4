// InputMarks: which inputs have been set, so that a run refuses one that was forgotten. An input that was set
// once stays set in its shape set, until another set is used; one whose address was given is the caller's
// care.
#pragma once

#include <algorithm>
#include <span>

#include "sinter/sinter.h"

namespace sinter {

class InputMarks {
 public:
  // Returns the bytes of the marks: one for each input of each shape set.
  static size_t bytes(const Model& model) { return size_t{model.entry_count()} * most_inputs(model); }
  // Begins with no input set but the bound ones. `memory` has bytes().
  void begin(const Model& model, const SessionOptions& options, std::span<uint8_t> memory);

  void set(uint32_t entry, uint32_t input) { mark(entry, input) |= kSet | kOnce; }
  // Returns whether the input has been set since the last run.
  bool is_set(uint32_t entry, uint32_t input) const { return (mark(entry, input) & kSet) != 0; }
  // The caller has the input's address, and writes there when it likes.
  void give_address(uint32_t entry, uint32_t input) { mark(entry, input) |= kAddress; }
  void give_all_addresses() { all_addresses_ = true; }
  // Notes that a run has begun.
  void forget() { clear(kSet, UINT32_MAX); }
  // Forgets the inputs of all other shape sets, because the next run is of this one.
  void forget_all_but(uint32_t entry) { clear(kSet | kOnce, entry); }
  void forget_all() { clear(kSet | kOnce, UINT32_MAX); }
  // Returns kInvalidArgument with the first input that a run of this shape set lacks.
  Status check(const Model& model, uint32_t entry) const;

 private:
  static constexpr uint8_t kSet = 1, kAddress = 2, kOnce = 4;
  void clear(uint8_t bits, uint32_t but) {
    for (size_t i = 0; i < marks_.size(); ++i)
      if (i / most_ != but) marks_[i] &= static_cast<uint8_t>(~bits);
  }
  static uint32_t most_inputs(const Model& model);
  uint8_t& mark(uint32_t entry, uint32_t input) const { return marks_[size_t{entry} * most_ + input]; }

  std::span<uint8_t> marks_;
  uint32_t most_ = 0;
  bool all_addresses_ = false;
};

}  // namespace sinter
