// Exact search for an arrangement of rectangles (a size, a range of time) within a capacity.
//
// A block is open until it is placed. The search picks an open block and asks whether some open neighbour (a
// block of common time) will be under it:
//  - none does: then it is placed directly on what is placed already, and its open neighbours above it;
//  - one does: it is an `orphan`, not to be placed before a neighbour was.
// Every arrangement in which no block can be moved down answers each question in one way, so the order of the
// questions is free: it decides how soon the search fails or succeeds, not what it can find. Only blocks are
// picked that are no higher than their open neighbours.
//
// The search is for the arrangement whose offsets, listed by index, are first in lexicographic order. In it
// no block can be moved down, of two equal blocks the one of lower index is the lower one, and two blocks of
// the same time that touch are in the order of their indices.
//
// Bounds: in every section of time the open blocks form a one-machine problem with release dates (the lowest
// offset that each can still have); its makespan has to fit. Where no open block spans two neighbouring
// sections, what is left and right is independent and searched alone. States (a part's open blocks, their
// lowest offsets, which are orphans) that have failed are remembered, also from run to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sinter::convert {

struct Rectangle {
  int32_t size = 0;             // > 0
  int32_t first = 0, last = 0;  // both included
};

// Which of the blocks that may be picked: the lowest one, any, one where the sums of live bytes and gaps are
// greatest, one where most attempts have failed; ties by index.
enum class Pick { kLowest, kLowFailing, kPreferred, kCrowded, kFailing };

struct SearchBudget {
  uint64_t nodes = 0;
  double deadline = 0;  // in steady_seconds(); 0: none
};

double steady_seconds();

enum class SearchOutcome { kFound, kImpossible, kUndecided };

class OffsetSearch {
 public:
  // In the order of preference.
  explicit OffsetSearch(std::vector<Rectangle> rectangles);

  SearchOutcome run(int32_t capacity, Pick pick, SearchBudget budget);
  const std::vector<int32_t>& offsets() const { return offset_; }
  uint64_t nodes() const { return nodes_; }  // of the last run

 private:
  using Indices = std::vector<int32_t>;
  struct Block {
    int32_t size = 0, first = 0, last = 0;  // in sections
    int32_t equal_before = -1;              // the next lower index of an equal block
    int32_t position = 0;                   // lowest offset on what is placed
    int32_t earliest = 0;                   // lower bound of the offset
    bool orphan = false, open = true;
  };
  struct Undo {
    int32_t block, position;
    bool orphan;
  };
  struct Failed {
    uint64_t a = 0, b = 0;
  };

  Block& at(int32_t block) { return blocks_[static_cast<size_t>(block)]; }
  const Block& at(int32_t block) const { return blocks_[static_cast<size_t>(block)]; }
  void divide_time(std::vector<Rectangle>& rectangles);
  bool search(const Indices& open);
  bool search_parts(const Indices& open);
  bool lift_orphans(const Indices& open);
  bool fits(const Indices& by_earliest);
  int32_t choose(const Indices& open) const;
  bool place(int32_t chosen);
  void set(int32_t block, int32_t position, bool orphan);
  void undo(size_t mark);
  Failed key(const Indices& open) const;

  std::vector<Block> blocks_;
  std::vector<Indices> neighbours_;
  std::vector<int32_t> load_, reach_;  // per section: scratch
  std::vector<uint64_t> failures_;     // per section
  std::vector<Undo> trail_;
  std::vector<Failed> failed_;
  std::vector<int32_t> offset_;
  int32_t capacity_ = 0;
  Pick pick_ = Pick::kLowest;
  SearchBudget budget_;
  uint64_t nodes_ = 0;
  bool stopped_ = false;
};

}  // namespace sinter::convert
