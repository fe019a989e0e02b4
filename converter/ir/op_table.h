// Tables with an answer for every operation: rules of a pass, rates of a cost.
//
//   constexpr OpRow<Rule> kRules[] = {{Op::kConv, product}, {WorkKind::kControl, nullptr}, ...};
//   static_assert(unanswered(kRules) == Op{}, "...");      // fails while an operation has no row
//   const Rule rule = answer_for(kRules, node.op());
//
// A row is for one operation, or for all of a kind of work without their own row; "none" is a row, too.
#pragma once

#include <cstddef>

#include "converter/ir/op_traits.h"

namespace sinter::convert {

template <class Answer>
struct OpRow {
  constexpr OpRow(Op of, Answer a) : op(of), answer(a) {}
  constexpr OpRow(WorkKind of, Answer a) : work(of), by_work(true), answer(a) {}

  Op op{};
  WorkKind work{};
  bool by_work = false;
  Answer answer;
};

struct OpWork {
  Op op;
  WorkKind work;
  uint32_t traits = 0;
};

// All operations, in the order of schemas/ops.def.
inline constexpr OpWork kOpWork[] = {
#define SINTER_OP(name, id, version, mini, maxi, mino, maxo, ins, outs, traits, work, elements, integers, \
                  attributes)                                                                             \
  {Op::k##name, WorkKind::k##work, [] {                                                                   \
     using namespace trait_names;                                                                         \
     return traits;                                                                                       \
   }()},
#include "schemas/ops.def"
#undef SINTER_OP
};

// Whether the operation has all of these traits, for constant expressions.
constexpr bool row_has(Op op, uint32_t traits) {
  for (const OpWork& row : kOpWork)
    if (row.op == op) return (row.traits & traits) == traits;
  return false;
}

// Returns the row of an operation of this kind of work; null if the table has none.
template <class Answer, size_t kRows>
constexpr const OpRow<Answer>* row_for(const OpRow<Answer> (&rows)[kRows], OpWork of) {
  for (const OpRow<Answer>& row : rows)
    if (!row.by_work && row.op == of.op) return &row;
  for (const OpRow<Answer>& row : rows)
    if (row.by_work && row.work == of.work) return &row;
  return nullptr;
}

// Returns the first operation for which the table has no answer; Op{} if it has all.
template <class Answer, size_t kRows>
constexpr Op unanswered(const OpRow<Answer> (&rows)[kRows]) {
  for (const OpWork& of : kOpWork)
    if (row_for(rows, of) == nullptr) return of.op;
  return Op{};
}

// Returns the answer of a complete table.
template <class Answer, size_t kRows>
constexpr const Answer& answer_for(const OpRow<Answer> (&rows)[kRows], Op op) {
  return row_for(rows, {op, work_kind(op)})->answer;
}

}  // namespace sinter::convert
