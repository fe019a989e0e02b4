// Other .sinter files out of one: fields of the structure, attributes, wiring, shapes and weights changed,
// with what depends on them brought in line or left wrong; and damage to the bytes behind right digests.
#include <algorithm>
#include <cstring>

#include "runtime/core/op.h"
#include "runtime/core/tensor_view.h"
#include "tests/fuzz/model_file.h"

namespace sinter::fuzz {
namespace {

uint64_t bits_of(double d) {
  uint64_t bits;
  std::memcpy(&bits, &d, sizeof(bits));
  return bits;
}

struct AttrLists {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  void operator()(const char*, int64_t v) { ints.push_back(v); }
  void operator()(const char*, double v) { floats.push_back(v); }
  void operator()(const char*, const IntList&) { ints.push_back(0); }
  void operator()(const char*, const FloatList&) { ints.push_back(0); }
  template <class T>
  void operator()(const char*, const AttrView<T>&) {
    ints.push_back(0);
  }
};
AttrLists default_attrs(Op op) {
  AttrLists lists;
  switch (op) {
#define SINTER_OP(name, ...)   \
  case Op::k##name: {          \
    const name##Attrs attrs;   \
    visit_attrs(attrs, lists); \
    break;                     \
  }
#include "schemas/ops.def"
#undef SINTER_OP
    default:
      break;
  }
  return lists;
}

uint64_t dense_bytes(const Table& constant) {
  const std::vector<int64_t> dims = constant.list("dims");
  const auto dtype = static_cast<DType>(constant.get("dtype"));
  int64_t bytes = 0;
  return bit_width(dtype) > 0 && dims.size() <= kMaxRank && checked_bytes(dtype, dims, &bytes)
             ? static_cast<uint64_t>(bytes)
             : 0;
}

class Mutator {
 public:
  Mutator(ModelFile* model, Random& random) : model_(*model), root_(model->root), r_(random) {}

  void run() {
    for (uint64_t n = 1 + r_.below(4); n > 0; --n) change();
    if (r_.one_in(3)) return;
    repair(&model_);
    if (r_.one_in(4)) any_field();
  }

 private:
  void change() {
    switch (r_.below(10)) {
      case 0:
      case 1:
        return any_field();
      case 2:
      case 3:
        return attributes();
      case 4:
        return wiring();
      case 5:
      case 6:
        return shape();
      case 7:
        return weights();
      case 8:
        return new_step();
      default:
        return other_op();
    }
  }

  void collect(Table& t, std::vector<Table*>* all) {
    all->push_back(&t);
    for (Field& f : t.fields)
      for (Table& child : f.tables) collect(child, all);
  }

  void any_field() {
    std::vector<Table*> all;
    collect(root_, &all);
    Table& t = *r_.pick(all);
    const size_t id = r_.index(t.fields.size());
    const FieldType& type = t.type->fields[id];
    Field& f = t.fields[id];
    if (r_.one_in(12)) return void(f.present = !f.present);
    f.present = true;
    if (type.type == Type::kTable) {
      list_edit(&f.tables, [&] { return f.tables.empty() ? Table(type.table) : Table(r_.pick(f.tables)); });
    } else if (type.type == Type::kString) {
      if (type.list && r_.one_in(2)) return list_edit(&f.texts, [] { return std::string("reference"); });
      if (f.texts.empty()) return f.texts.emplace_back("x"), void();
      std::string& s = r_.pick(f.texts);
      if (r_.one_in(3))
        s.clear();
      else if (!s.empty())
        s[r_.index(s.size())] = static_cast<char>(r_.next());
      else
        s = "simd";
    } else {
      if (type.list && (f.numbers.empty() || r_.one_in(2)))
        return list_edit(&f.numbers, [&] { return static_cast<uint64_t>(r_.pick(kSharpInts)); });
      if (f.numbers.empty()) f.numbers.push_back(0);
      uint64_t& n = r_.pick(f.numbers);
      if (type.type == Type::kF64)
        n = bits_of(r_.pick(kSharpFloats));
      else if (type.type == Type::kF32)
        n = 0x7f800000u >> r_.below(3);
      else
        n = static_cast<uint64_t>(other_int(static_cast<int64_t>(n), r_));
    }
  }

  template <class T, class Make>
  void list_edit(std::vector<T>* list, Make&& make) {
    switch (r_.below(5)) {
      case 0:
        if (!list->empty()) list->erase(list->begin() + static_cast<ptrdiff_t>(r_.index(list->size())));
        return;
      case 1:
        if (list->size() < 300) {
          T item = make();
          list->insert(list->begin() + static_cast<ptrdiff_t>(r_.index(list->size() + 1)), std::move(item));
        }
        return;
      case 2:
        if (list->size() > 1) std::swap(r_.pick(*list), r_.pick(*list));
        return;
      case 3:
        list->resize(r_.index(list->size() + 1), make());
        return;
      default:
        if (list->size() > 1) {
          T copy = r_.pick(*list);
          r_.pick(*list) = std::move(copy);
        }
    }
  }

  Table* some_program() {
    std::vector<Table>& programs = root_.tables("programs");
    return programs.empty() ? nullptr : &r_.pick(programs);
  }
  Table* some_step(Table* program) {
    if (program == nullptr) return nullptr;
    std::vector<Table>& prepare = program->tables("prepare");
    std::vector<Table>& steps = !prepare.empty() && r_.one_in(4) ? prepare : program->tables("steps");
    return steps.empty() ? nullptr : &r_.pick(steps);
  }

  void attributes() {
    Table* s = some_step(some_program());
    if (s == nullptr) return;
    Field &ints = (*s)["ints"], &floats = (*s)["floats"];
    if (!floats.numbers.empty() && r_.one_in(3)) {
      r_.pick(floats.numbers) = bits_of(r_.pick(kSharpFloats));
    } else if (!ints.numbers.empty()) {
      uint64_t& n = r_.pick(ints.numbers);
      n = static_cast<uint64_t>(r_.one_in(2) ? static_cast<int64_t>(r_.below(6))
                                             : other_int(static_cast<int64_t>(n), r_));
    }
  }

  void wiring() {
    Table* p = some_program();
    Table* s = some_step(p);
    if (s == nullptr) return;
    const size_t values = p->tables("values").size();
    if (r_.one_in(4)) return results(*s);
    Field& ins = (*s)["inputs"];
    ins.present = true;
    const auto some = [&] { return r_.one_in(8) ? ~uint64_t{0} : r_.below(values); };
    if (ins.numbers.empty() || r_.one_in(5))
      ins.numbers.push_back(some());
    else if (r_.one_in(5))
      ins.numbers.pop_back();
    else
      r_.pick(ins.numbers) = some();
  }

  // Of a step, in other places or unused.
  void results(Table& s) {
    Field& outs = s["outputs"];
    outs.present = true;
    constexpr uint64_t kUnwanted = ~uint64_t{0};
    if (outs.numbers.empty() || r_.one_in(4))
      outs.numbers.insert(outs.numbers.begin() + static_cast<ptrdiff_t>(r_.index(outs.numbers.size() + 1)),
                          kUnwanted);
    else if (r_.one_in(2))
      r_.pick(outs.numbers) = kUnwanted;
    else
      std::swap(r_.pick(outs.numbers), r_.pick(outs.numbers));
  }

  void shape() {
    std::vector<Table>& constants = root_.tables("constants");
    Table* t = nullptr;
    if (!constants.empty() && r_.one_in(2)) {
      t = &r_.pick(constants);
    } else {
      Table* p = some_program();
      if (p == nullptr || p->tables("values").empty()) return;
      for (int i = 0; i < 8; ++i) {
        t = &r_.pick(p->tables("values"));
        if (t->get("kind") == 2) break;
      }
    }
    std::vector<int64_t> dims = t->list("dims");
    if (r_.one_in(5))
      t->set("dtype", static_cast<int64_t>(r_.below(static_cast<uint64_t>(DType::kCount) + 1)));
    else if (dims.size() < 9 && r_.one_in(6))
      dims.insert(dims.begin() + static_cast<ptrdiff_t>(r_.index(dims.size() + 1)), r_.one_in(3) ? 3 : 1);
    else if (!dims.empty() && r_.one_in(6))
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(r_.index(dims.size())));
    else if (dims.size() > 1 && r_.one_in(4))
      std::swap(r_.pick(dims), r_.pick(dims));
    else if (!dims.empty()) {
      int64_t& d = r_.pick(dims);
      d = r_.one_in(2) ? static_cast<int64_t>(r_.below(20)) : other_int(d, r_);
    }
    t->set_list("dims", dims);
  }

  void weights() {
    std::vector<Table>& constants = root_.tables("constants");
    if (constants.empty()) return;
    Table& c = r_.pick(constants);
    const auto segment = static_cast<uint64_t>(c.get("segment")), at = static_cast<uint64_t>(c.get("offset")),
               length = dense_bytes(c);
    if (segment >= model_.segments.size()) return;
    Blob& bytes = model_.segments[segment].bytes;
    if (length == 0 || at >= bytes.size() || length > bytes.size() - at) return;
    const auto dtype = static_cast<DType>(c.get("dtype"));
    const size_t width = std::max<size_t>(byte_width(dtype), 1);
    for (uint64_t n = 1 + r_.below(3); n > 0; --n) {
      const size_t spot = at + r_.index(length / width) * width;
      uint64_t bits = r_.next();
      if (r_.one_in(4))
        bits = 0;
      else if (dtype == DType::kFloat32) {
        const float f = static_cast<float>(r_.pick(kSharpFloats));
        bits = 0;
        std::memcpy(&bits, &f, 4);
      } else if (dtype == DType::kFloat64)
        bits = bits_of(r_.pick(kSharpFloats));
      else if (r_.one_in(2))
        bits = static_cast<uint64_t>(r_.pick(kSharpInts));
      if (spot + width <= bytes.size()) std::memcpy(&bytes[spot], &bits, width);
    }
  }

  // An operation more, on values that exist, its results new ones or the program's outputs.
  void new_step() {
    Table* p = some_program();
    if (p == nullptr || p->tables("values").size() > 200) return;
    const OpInfo& info = op_info_at(static_cast<int>(r_.below(kOpCount)));
    std::vector<Table>& values = p->tables("values");
    std::vector<Table>& steps = p->tables("steps");
    const size_t before = values.size();
    if (before == 0 || (info.traits & kControl) != 0) return;
    Table s(p->type->fields[p->type->id("steps")].table);
    s.set("op", static_cast<int64_t>(info.op));
    s.set("op_version", info.version);
    const int most_in = info.max_inputs < 0 ? info.min_inputs + 3 : info.max_inputs;
    std::vector<int64_t> ins, outs;
    const auto n_in = info.min_inputs + r_.below(static_cast<uint64_t>(most_in - info.min_inputs) + 1);
    const auto first = static_cast<int64_t>(r_.below(before));
    for (uint64_t i = 0; i < n_in; ++i)
      ins.push_back(i == 0 || r_.one_in(3) ? first : static_cast<int64_t>(r_.below(before)));
    for (int i = 0; i < std::max<int>(info.min_outputs, 1); ++i) {
      outs.push_back(static_cast<int64_t>(values.size()));
      Table v(p->type->fields[p->type->id("values")].table);
      v.set("dtype", 1);
      v.set_list("dims", {});
      v.set("kind", 0);
      values.push_back(std::move(v));
    }
    s.set_list("inputs", ins);
    s.set_list("outputs", outs);
    AttrLists attrs = default_attrs(info.op);
    // A list attribute has often as many entries as an operand has dims.
    const auto rank = values[static_cast<size_t>(first)].list("dims").size();
    std::vector<int64_t> ints;
    for (const int64_t i : attrs.ints) {
      ints.push_back(i);
      if (i != 0 || r_.one_in(2)) continue;
      const size_t n = r_.one_in(2) ? rank : r_.index(5);
      ints.back() = static_cast<int64_t>(n);
      for (size_t k = 0; k < n; ++k) ints.push_back(static_cast<int64_t>(r_.below(4)));
    }
    s.set_list("ints", r_.one_in(3) ? attrs.ints : ints);
    Field& floats = s["floats"];
    floats.present = true;
    for (const double d : attrs.floats) floats.numbers.push_back(bits_of(d));
    steps.insert(r_.one_in(4) ? steps.begin() + static_cast<ptrdiff_t>(r_.index(steps.size())) : steps.end(),
                 std::move(s));
    (*p)["steps"].present = true;
  }

  void other_op() {
    Table* s = some_step(some_program());
    if (s == nullptr) return;
    const OpInfo* was = op_info(static_cast<Op>(s->get("op")));
    for (int i = 0; i < 20; ++i) {
      const OpInfo& info = op_info_at(static_cast<int>(r_.below(kOpCount)));
      if (was != nullptr && info.min_inputs != was->min_inputs && !r_.one_in(8)) continue;
      s->set("op", static_cast<int64_t>(info.op));
      if (!r_.one_in(6)) s->set("op_version", info.version);
      if (!r_.one_in(6)) {
        const AttrLists attrs = default_attrs(info.op);
        s->set_list("ints", attrs.ints);
        Field& floats = (*s)["floats"];
        floats = {};
        floats.present = true;
        for (const double d : attrs.floats) floats.numbers.push_back(bits_of(d));
      }
      return;
    }
  }

  ModelFile& model_;
  Table& root_;
  Random& r_;
};

// The structure's bytes changed at their place; the header, too, at times.
Blob damaged(View bytes, size_t most, Random& r, const ByteMutator& by_bytes) {
  Blob file(bytes.begin(), bytes.end());
  format::Header h;
  if (file.size() < sizeof(h) || r.one_in(4)) {
    by_bytes(&file, most);
    if (!r.one_in(3)) reseal(&file, r.one_in(2));
    return file;
  }
  std::memcpy(&h, file.data(), sizeof(h));
  if (h.flatbuffer_offset < file.size() && h.flatbuffer_bytes > 0 &&
      h.flatbuffer_bytes <= file.size() - h.flatbuffer_offset) {
    for (uint64_t edits = 1 + r.below(3); edits > 0; --edits) {
      const size_t at = h.flatbuffer_offset + r.index(h.flatbuffer_bytes);
      const size_t word = at & ~size_t{3};
      const auto sharp = static_cast<uint32_t>(r.pick(kSharpInts));
      if (word + 4 > file.size()) continue;
      switch (r.below(4)) {
        case 0:
          file[at] = static_cast<uint8_t>(r.next());
          break;
        case 1:
          file[at] = static_cast<uint8_t>(file[at] ^ (1u << r.below(8)));
          break;
        case 2:
          std::memcpy(&file[word], &sharp, 4);
          break;
        default: {
          const size_t from = h.flatbuffer_offset + (r.index(h.flatbuffer_bytes) & ~size_t{3});
          if (from + 4 <= file.size()) std::memmove(&file[word], &file[from], 4);
        }
      }
    }
  }
  reseal(&file, true);
  return file;
}

}  // namespace

Blob mutate_model(View bytes, size_t most, Random& random, const ByteMutator& by_bytes) {
  if (!random.one_in(6)) {
    if (auto model = ModelFile::parse(bytes)) {
      Mutator(&*model, random).run();
      Blob out = model->write();
      if (!out.empty() && out.size() <= most) return out;
    }
  }
  return damaged(bytes, most, random, by_bytes);
}

}  // namespace sinter::fuzz
