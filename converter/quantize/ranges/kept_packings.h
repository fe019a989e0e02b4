// Packed weights that the sessions of trials share. A trial differs from the one before in a few operations;
// the others read the same weights in the same packed form.
//
// A packing is a function of its parameters and of the constants that it is made from, so that keeping it
// changes nothing but the time. Large constants are the same where they are one object, others where their
// bytes are equal. The least recently used packing is forgotten first; sessions that read it keep it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "converter/emit/mapped_model.h"
#include "converter/ir/constant.h"
#include "runtime/backend/backend.h"

namespace sinter::convert {

class KeptPackings {
 public:
  // Bytes of packings that are kept. They are in files of the temporary folder, whose pages a ResidentLimit
  // releases; small ones, and all where the folder has no room, are in memory.
  explicit KeptPackings(size_t most_bytes) : most_bytes_(most_bytes) {}
  KeptPackings(const KeptPackings&) = delete;
  KeptPackings& operator=(const KeptPackings&) = delete;

  // Packings that were made so far.
  int64_t made() const { return made_; }

  // An operand that a packing is made from, as the kernel reads it.
  struct Input {
    ConstantPtr constant;  // null: an optional operand that is absent
    DType dtype = DType::kNone;
    Dims dims;
  };
  struct Key {
    const char* backend = "";  // its name
    Packing packing;
    std::vector<Input> inputs;  // of Packing::inputs, in order
  };
  class Block;
  // Returns the Packing::bytes bytes that `fill` writes, or wrote for an equal key before; null if `fill`
  // failed, and `*status` is its error then. Throws std::bad_alloc.
  using Fill = std::function<Status(std::span<std::byte>)>;
  std::shared_ptr<const Block> of(const Key& key, const Fill& fill, Status* status);
  // A packing that is not kept, because what it is made from is not a constant of the graph.
  std::shared_ptr<const Block> apart(const Packing& packing, const Fill& fill, Status* status);

 private:
  struct Part {
    std::weak_ptr<const Constant> large;
    const Constant* address = nullptr;  // of `large`; null: the constant is small, or absent
    Bytes small;
    DType dtype = DType::kNone;
    Dims dims;
  };
  struct Entry {
    const char* backend;
    Packing packing;
    std::vector<Part> parts;
    std::shared_ptr<const Block> block;
  };
  static Part part_of(const Input& input);
  static bool same(const Entry& a, const Entry& b);
  void forget(std::list<Entry>::iterator at);

  const size_t most_bytes_;
  size_t bytes_ = 0;
  int64_t made_ = 0;
  std::list<Entry> entries_;  // the most recently used first
};

// The bytes of one packing.
class KeptPackings::Block {
 public:
  explicit Block(size_t bytes);
  std::span<std::byte> span() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  FileMemory file_;
  std::unique_ptr<std::byte, Free> memory_;
  std::span<std::byte> bytes_;
};

// A backend in host memory whose steps read kept packings, for one session of the model. To the session it
// packs nothing.
class KeepingBackend final : public Backend {
 public:
  // All of them must outlive it.
  KeepingBackend(Backend& packs, KeptPackings& kept, const MappedModel& model)
      : packs_(packs), kept_(kept), model_(model) {}

  const char* name() const override { return packs_.name(); }
  Status open(BumpArena& prepared) override { return packs_.open(prepared); }
  void close() override { packs_.close(); }
  Status measure(const OpCall& call, int threads, StepNeeds* needs) override;
  Status prepare(const OpCall& call, const Preparation& with, PreparedStep* step) override;
  bool fuse(const PreparedStep& first, const PreparedStep& next) override { return packs_.fuse(first, next); }
  void release(PreparedStep& step) override { packs_.release(step); }

 private:
  Status find(const OpCall& call, const Packing& packing, ThreadPool* threads,
              std::span<const std::byte>* packed);

  Backend& packs_;
  KeptPackings& kept_;
  const MappedModel& model_;
  std::vector<std::shared_ptr<const KeptPackings::Block>> blocks_;  // that the session reads
};

}  // namespace sinter::convert
