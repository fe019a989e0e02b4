// AttrReader: the visitor that fills an attribute struct from a file's lists.
//
//   AttrReader reader(version, lists);
//   visit_attrs(attrs, reader);
//   SINTER_RETURN_IF_ERROR(reader.finish());
#pragma once

#include "runtime/core/op.h"

namespace sinter {

class AttrReader {
 public:
  // `version` is that of the op's row when the file was written. An attribute that was added later keeps its
  // default.
  AttrReader(uint16_t version, const AttrLists& lists) : version_(version), rest_(lists) {}

  void operator()(const char*, int64_t& v, int since) {
    if (since > version_) return;
    if (rest_.ints.empty()) return fail();
    v = rest_.ints.front();
    rest_.ints = rest_.ints.subspan(1);
  }
  void operator()(const char*, double& v, int since) {
    if (since > version_) return;
    if (rest_.floats.empty()) return fail();
    v = rest_.floats.front();
    rest_.floats = rest_.floats.subspan(1);
  }
  void operator()(const char* name, IntList& list, int since) { read_list(name, list, rest_.ints, since); }
  void operator()(const char* name, FloatList& list, int since) {
    read_list(name, list, rest_.floats, since);
  }
  void operator()(const char* name, AttrBytes& bytes, int since) { read_view(name, bytes, since); }
  void operator()(const char* name, AttrText& text, int since) {
    read_view(name, text, since);
    if (text.size > 0 && std::memchr(text.data, 0, text.size) != nullptr) fail();
  }

  // Returns kCorrupt unless the lists held the attributes and nothing more.
  Status finish() const {
    SINTER_RETURN_UNLESS(good_ && rest_.ints.empty() && rest_.floats.empty() && rest_.bytes.empty(),
                         corrupt("the attribute lists do not fit the operation"));
    return ok_status();
  }

 private:
  void fail() { good_ = false; }
  // Returns the length that precedes a list, at most `most`.
  size_t read_length(const char* name, size_t most) {
    int64_t n = 0;
    (*this)(name, n, 0);
    if (n < 0 || static_cast<uint64_t>(n) > most) return fail(), 0;
    return good_ ? static_cast<size_t>(n) : 0;
  }
  template <class T>
  void read_list(const char* name, AttrList<T>& list, std::span<const T>& from, int since) {
    if (since > version_) return;
    const size_t n = read_length(name, kMaxAttrList);
    if (n > from.size()) return fail();  // the length of a list of integers was one of them
    for (size_t i = 0; i < n; ++i) list.items[i] = from[i];
    list.count = static_cast<int32_t>(n);
    from = from.subspan(n);
  }
  template <class T>
  void read_view(const char* name, AttrView<T>& view, int since) {
    if (since > version_) return;
    const size_t n = read_length(name, rest_.bytes.size());
    view = {reinterpret_cast<const T*>(rest_.bytes.data()), static_cast<uint32_t>(n)};
    rest_.bytes = rest_.bytes.subspan(n);
  }

  uint16_t version_;
  AttrLists rest_;
  bool good_ = true;
};

}  // namespace sinter
