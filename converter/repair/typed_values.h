// The values of an ONNX model with the types that they have in the repaired one, and their readers.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "converter/import/read/imported_graph.h"
#include "converter/ir/ledger.h"
#include "converter/repair/signatures.h"

namespace sinter::convert {

struct TypedScope;

struct ValueReader {
  const ImportedNode* node = nullptr;  // null: an output of the scope's graph
  TypedScope* scope = nullptr;
  size_t index = 0;  // of the operand or output
  OnnxType wants = 0;
  TypeRule rule{};
  std::string reason;
};

struct TypedValue {
  std::string name = {};
  OnnxType type = 0;          // of its elements; 0: not known
  ConstantPtr constant = {};  // set: the file holds its data
  const ImportedTensor* initializer = nullptr;
  const ImportedNode* producer = nullptr;  // null: an initializer, input or parameter
  size_t result = 0;                       // of the producer
  std::vector<ValueReader> readers = {};
};

// The names of a graph, a body, or a function.
struct TypedScope {
  const ImportedGraph* graph = nullptr;  // null: a function
  std::string key;                       // body_key()
  TypedScope* outer = nullptr;
  std::deque<TypedValue> values = {};  // in the order of definition
  std::unordered_map<std::string, TypedValue*> by_name = {};

  TypedValue* define(TypedValue value) {
    values.push_back(std::move(value));
    by_name[values.back().name] = &values.back();
    return &values.back();
  }
  // Returns the value and the scope that defines it; nulls if none does.
  std::pair<TypedValue*, TypedScope*> find(const std::string& name) {
    for (TypedScope* s = this; s != nullptr; s = s->outer)
      if (const auto at = s->by_name.find(name); at != s->by_name.end()) return {at->second, s};
    return {};
  }
};

}  // namespace sinter::convert
