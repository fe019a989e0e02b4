// EncodedAttrs: an operation's attributes in the form of a file (decoded by runtime/core/attr_reader.h).
#pragma once

#include <vector>

#include "runtime/core/op.h"

namespace sinter::convert {

// A visitor of visit_attrs that appends each attribute.
struct EncodedAttrs {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<uint8_t> bytes;

  bool operator==(const EncodedAttrs&) const = default;

  void operator()(const char*, int64_t v) { ints.push_back(v); }
  void operator()(const char*, double v) { floats.push_back(v); }
  void operator()(const char*, const IntList& list) {
    ints.push_back(list.size());
    ints.insert(ints.end(), list.begin(), list.end());
  }
  void operator()(const char*, const FloatList& list) {
    ints.push_back(list.size());
    floats.insert(floats.end(), list.begin(), list.end());
  }
  template <class T>
  void operator()(const char*, const AttrView<T>& view) {
    ints.push_back(view.size);
    const auto* data = reinterpret_cast<const uint8_t*>(view.data);
    bytes.insert(bytes.end(), data, data + view.size);
  }
};

}  // namespace sinter::convert
