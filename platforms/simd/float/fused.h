// Element-wise steps in a row that are computed together, piece by piece, so that the results of one are in
// the first cache when the next reads them. Results are the same as one step at a time.
#pragma once

#include "platforms/simd/table.h"

namespace sinter::simd {

// The computation of an element-wise step of dense float32 operands, for any range of elements.
struct Piece {
  // Computes elements first .. first + count - 1 of y, in the order of memory. Null: not such a step.
  void (*compute)(const Piece& piece, int64_t first, int64_t count) = nullptr;
  const float *a = nullptr, *b = nullptr;  // b: null for functions of one operand
  float* y = nullptr;
  int64_t size = 0, row = 0;       // elements of y, and of its last axis
  int64_t a_size = 0, b_size = 0;  // elements of an operand: size, 1, or (b) row
  int function = 0;                // a function of unary.cc or binary.cc
  float settings[3] = {};
  Piece* next = nullptr;  // computed behind this one
};

// Describes a step; returns false if it cannot be computed in pieces. In unary.cc and binary.cc.
bool unary_piece(const OpCall& call, Piece* piece);
bool binary_piece(const OpCall& call, Piece* piece);
inline bool piece_of(const OpCall& call, Piece* piece) {
  return unary_piece(call, piece) || binary_piece(call, piece);
}

// Appends a step to those that are computed with `first`, if it reads a result of theirs. Returns false if it
// has to run by itself, because its size differs, it would overwrite elements that one of them has still to
// read, or it would be the 65th.
bool fuse_pieces(Piece* first, Piece* next);
void run_pieces(const Piece& first, ThreadPool* threads);

}  // namespace sinter::simd
