// Exact search for an arrangement of rectangles (a size, a range of time) within a capacity.
//
// Among all arrangements that fit take the one whose offsets, listed by rank, are the least in lexicographic
// order. In it no block can be moved down, so it arises by placing the blocks in the order of (offset, rank),
// each directly on what lies under it. The search builds only such sequences and leaves out what the least
// arrangement cannot be:
//  - a block at or above where another, not yet placed one would fit whole (that one could move down);
//  - a block on one of the same time and higher rank (the two could be exchanged);
//  - one of two equal blocks before the one of lower rank.
// A block that was passed over has to be lifted by another before its turn comes (it is an `orphan` until
// then).
//
// Bounds: in every section of time the blocks still to be placed form a one-machine problem with release
// dates (the lowest offset each can have); its makespan has to fit. Where no open block spans two
// neighbouring sections, what lies left and right is independent: each part is searched alone. States (the
// open blocks of a part, their lowest offsets, which are orphans) that have failed are remembered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sinter::convert {

struct Rectangle {
  int32_t size = 0;             // > 0
  int32_t first = 0, last = 0;  // both included
};

struct SearchBudget {
  uint64_t nodes = 0;
  double deadline = 0;  // of steady_seconds(); 0: none
};

double steady_seconds();

enum class SearchOutcome { kFound, kImpossible, kUndecided };

// One rectangle's place in every order of preference is its rank: 0 is tried first.
class OffsetSearch {
 public:
  explicit OffsetSearch(std::vector<Rectangle> rectangles);

  SearchOutcome run(int32_t capacity, const std::vector<int32_t>& rank, SearchBudget budget);
  const std::vector<int32_t>& offsets() const { return offset_; }
  uint64_t nodes() const { return nodes_; }  // of the last run

 private:
  struct Block {
    int32_t size = 0, first = 0, last = 0;  // in sections
    int32_t rank = 0;
    int32_t position = 0;  // lowest offset on what is placed
    bool orphan = false, open = true;
  };
  struct Undo {
    int32_t block, position;
    bool orphan;
  };
  struct Failed {
    uint64_t a = 0, b = 0;
  };

  void find_sections(const std::vector<Rectangle>& rectangles);
  bool search(const std::vector<int32_t>& open);
  bool search_parts(std::vector<int32_t>& open);
  bool lift_orphans(const std::vector<int32_t>& open);
  bool fits(const std::vector<int32_t>& open);
  bool place(int32_t chosen, const std::vector<int32_t>& skipped);
  void set(int32_t block, int32_t position, bool orphan);
  void undo(size_t mark);
  Failed key(const std::vector<int32_t>& open) const;

  int32_t capacity_ = 0;
  int32_t sections_ = 0;
  std::vector<Block> blocks_;   // by rank
  std::vector<int32_t> given_;  // rank -> index as given
  std::vector<Rectangle> rectangles_;
  std::vector<std::vector<int32_t>> neighbours_;
  std::vector<int32_t> earliest_;  // lower bound of a block's offset
  std::vector<int32_t> load_, reach_;
  std::vector<Undo> trail_;
  std::vector<Failed> failed_;
  std::vector<int32_t> offset_;
  uint64_t nodes_ = 0;
  SearchBudget budget_;
  bool stopped_ = false;
};

}  // namespace sinter::convert
