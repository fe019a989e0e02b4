// What a mutator has changed in the inputs, attributes or constants of a .sinter file, carried through the
// rest of it: a file that the verifier refuses at the first step would not test the second.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "runtime/core/tensor_view.h"
#include "runtime/kernels/reference.h"
#include "runtime/model/verify.h"
#include "tests/fuzz/model_file.h"

namespace sinter::fuzz {
namespace {

constexpr int64_t kMostBytes = 1 << 20;   // of one value
constexpr size_t kMostWeights = 1 << 19;  // of all constants

struct Fact {
  int64_t dtype = 0;
  std::vector<int64_t> dims;
};
Fact fact_of(const Table& t) { return {t.get("dtype"), t.list("dims")}; }
void set_fact(Table& t, const Fact& f) {
  t.set("dtype", f.dtype);
  t.set_list("dims", f.dims);
}
bool small(const Fact& f, int64_t* bytes) {
  // As the verifier: strides are computed whatever zeros are among the dims.
  int64_t product = 8;
  for (const int64_t d : f.dims)
    if (d < 0 || !checked_mul<int64_t>(product, d > 0 ? d : 1, &product)) return false;
  return bit_width(static_cast<DType>(f.dtype)) > 0 && f.dims.size() <= kMaxRank &&
         checked_bytes(static_cast<DType>(f.dtype), f.dims, bytes) && *bytes <= kMostBytes;
}
uint64_t padded(uint64_t n) { return (n + 63) / 64 * 64; }

class Repair {
 public:
  explicit Repair(ModelFile* model) : model_(*model), root_(model->root) {}

  void run() {
    constants();
    std::vector<Table>& programs = root_.tables("programs");
    seen_.assign(programs.size(), false);
    workspaces_.resize(programs.size());
    std::vector<bool> owned(programs.size());
    for (Table& p : programs)
      for (Table& s : p.tables("steps"))
        for (const int64_t sub : s.list("subprograms"))
          if (sub >= 0 && static_cast<size_t>(sub) < owned.size()) owned[static_cast<size_t>(sub)] = true;
    for (size_t i = 0; i < programs.size(); ++i)
      if (!owned[i]) program(i, 0);
    for (Table& profile : root_.tables("profiles")) plan(profile, owned);
  }

 private:
  // Each in a place of its own, with bytes as its dims need: the old ones, over and over.
  void constants() {
    Blob weights;
    for (Table& c : root_.tables("constants")) {
      const Fact f = fact_of(c);
      int64_t bytes = 0;
      const auto segment = static_cast<uint64_t>(c.get("segment"));
      if (segment == detail::kLeftOut) {
        c.set("offset", 0);
        continue;
      }
      const auto from = static_cast<uint64_t>(c.get("offset"));
      if (!small(f, &bytes) || weights.size() + static_cast<size_t>(bytes) > kMostWeights ||
          segment >= model_.segments.size())
        return;
      const Blob& old = model_.segments[segment].bytes;
      // Of the constant as it was, which is not known: as many as there are.
      const uint64_t length =
          from < old.size() ? std::min<uint64_t>(old.size() - from, static_cast<uint64_t>(bytes)) : 0;
      const size_t at = weights.size();
      weights.resize(padded(at + static_cast<size_t>(bytes) + 64));
      for (size_t i = 0; i < static_cast<size_t>(bytes) && length > 0; ++i)
        weights[at + i] = old[from + i % length];
      c.set("offset", static_cast<int64_t>(at));
      offsets_moved_ = true;
    }
    if (!offsets_moved_) return;
    for (Table& c : root_.tables("constants"))
      if (static_cast<uint64_t>(c.get("segment")) != detail::kLeftOut) c.set("segment", 0);
    if (model_.segments.empty()) model_.segments.emplace_back();
    model_.segments[0] = {0, std::move(weights)};
  }

  Table* value_of(Table& program, int64_t v) {
    std::vector<Table>& values = program.tables("values");
    return v >= 0 && static_cast<size_t>(v) < values.size() ? &values[static_cast<size_t>(v)] : nullptr;
  }
  Table* port_value(Table& program, const char* list, size_t i) {
    std::vector<Table>& ports = program.tables(list);
    return i < ports.size() ? value_of(program, ports[i].get("value")) : nullptr;
  }

  void program(size_t index, int depth) {
    if (depth > 8 || seen_[index]) return;
    seen_[index] = true;
    Table& p = root_.tables("programs")[index];
    std::vector<Table>& constants = root_.tables("constants");
    for (Table& v : p.tables("values")) {
      const auto kind = v.get("kind");
      const int64_t c = kind == 1 ? v.get("constant", -1) : kind == 3 ? v.get("initial", -1) : -1;
      if (c >= 0 && static_cast<size_t>(c) < constants.size())
        set_fact(v, fact_of(constants[static_cast<size_t>(c)]));
    }
    for (const char* list : {"inputs", "outputs"})
      for (Table& port : p.tables(list)) port["dims"] = {};
    for (Table& s : p.tables("prepare")) step(p, s);
    workspaces_[index].clear();
    const size_t steps = p.tables("steps").size();
    for (size_t i = 0; i < steps; ++i) {
      Table& s = p.tables("steps")[i];
      const int64_t op = s.get("op");
      uint64_t workspace = 0;
      if (op == static_cast<int64_t>(Op::kIf) || op == static_cast<int64_t>(Op::kLoop))
        control(p, s, op == static_cast<int64_t>(Op::kLoop), depth);
      else
        workspace = step(p, s);
      workspaces_[index].push_back(workspace);
    }
  }

  void control(Table& p, Table& s, bool loop, int depth) {
    const std::vector<int64_t> ins = s.list("inputs"), outs = s.list("outputs"), ints = s.list("ints");
    const size_t first = loop ? 0 : 1;
    Fact last;
    std::vector<Table>& programs = root_.tables("programs");
    for (const int64_t sub : s.list("subprograms")) {
      if (sub < 0 || static_cast<size_t>(sub) >= programs.size()) continue;
      Table& body = programs[static_cast<size_t>(sub)];
      for (size_t i = loop ? 2 : first; i < ins.size(); ++i) {
        Table* from = value_of(p, ins[i]);
        Table* to = port_value(body, "inputs", i - first);
        if (from != nullptr && to != nullptr) set_fact(*to, fact_of(*from));
      }
      program(static_cast<size_t>(sub), depth + 1);
      const auto carried = loop && ints.size() > 1 ? static_cast<uint64_t>(ints[1]) : 0;
      for (size_t i = 0; i < outs.size(); ++i) {
        Table* from = port_value(body, "outputs", loop ? i + 1 : i);
        Table* to = value_of(p, outs[i]);
        if (from == nullptr || to == nullptr || (loop && i + 1 == outs.size())) continue;
        Fact f = fact_of(*from);
        if (loop && i >= carried) f.dims.insert(f.dims.begin(), ints.empty() ? 0 : ints[0]);
        int64_t bytes = 0;
        if (small(f, &bytes)) set_fact(*to, f);
      }
    }
  }

  // Infers the outputs; returns the workspace.
  uint64_t step(Table& p, Table& s) {
    const std::vector<int64_t> ins = s.list("inputs"), outs = s.list("outputs"), ints = s.list("ints");
    std::vector<double> floats;
    for (const uint64_t bits : s["floats"].numbers) {
      double d;
      std::memcpy(&d, &bits, sizeof(d));
      floats.push_back(d);
    }
    const auto op = static_cast<Op>(s.get("op"));
    if (op_info(op) == nullptr || ins.size() + outs.size() > detail::kMaxOperands) return 0;
    std::vector<uint64_t> storage(attrs_bytes(op) / 8 + 8);
    std::vector<std::byte> bytes;
    for (const uint64_t b : s["bytes"].numbers) bytes.push_back(static_cast<std::byte>(b));
    if (!decode_attrs(op, static_cast<uint16_t>(s.get("op_version", 1)), {ints, floats, bytes},
                      storage.data())
             .ok())
      return 0;
    std::vector<TensorView> in(ins.size()), out(outs.size());
    for (size_t i = 0; i < ins.size(); ++i) {
      Table* v = value_of(p, ins[i]);
      if (v == nullptr) continue;
      const Fact f = fact_of(*v);
      int64_t bytes = 0;
      if (!small(f, &bytes)) return 0;
      in[i].dtype = static_cast<DType>(f.dtype);
      in[i].set_shape(f.dims);
      in[i].constant = v->get("kind") == 1;
    }
    for (size_t i = 0; i < outs.size(); ++i)
      if (outs[i] < 0) out[i].rank = kUnwantedRank;
    OpCall call{op, storage.data(), in, out};
    if (!infer(call, reference_kernels()).ok()) return 0;
    for (size_t i = 0; i < outs.size(); ++i) {
      Table* v = value_of(p, outs[i]);
      if (v == nullptr || out[i].rank > kMaxRank) continue;
      const Fact f{static_cast<int64_t>(out[i].dtype), {out[i].dims, out[i].dims + out[i].rank}};
      int64_t bytes = 0;
      if (!small(f, &bytes)) return 0;
      set_fact(*v, f);
    }
    for (TensorView& v : out)
      if (v.rank == kUnwantedRank) v = {};
    const Kernel* kernel = reference_kernels()[static_cast<size_t>(op_index(op))];
    size_t workspace = 0;
    if (kernel->workspace == nullptr || !kernel->workspace(call, 1, &workspace).ok()) return 0;
    return workspace <= static_cast<size_t>(kMostBytes) * 4 ? workspace : 0;
  }

  // A plan of every program, with the entries that the profile has, or all.
  void plan(Table& profile, const std::vector<bool>& owned) {
    std::vector<Table>& programs = root_.tables("programs");
    const TableType* plan_type = profile.type->fields[profile.type->id("plans")].table;
    std::vector<Table> plans(programs.size(), Table(plan_type));
    for (Table& p : profile.tables("plans"))
      if (const auto i = static_cast<uint64_t>(p.get("program")); i < plans.size()) plans[i] = p;
    std::vector<int64_t> entries;
    for (const int64_t e : profile.list("entries"))
      if (e >= 0 && static_cast<size_t>(e) < programs.size() && !owned[static_cast<size_t>(e)] &&
          std::find(entries.begin(), entries.end(), e) == entries.end())
        entries.push_back(e);
    for (size_t i = 0; i < programs.size() && entries.empty(); ++i)
      if (!owned[i]) entries.push_back(static_cast<int64_t>(i));
    profile.set_list("entries", entries);
    std::vector<bool> parts(programs.size());
    for (const int64_t e : entries) mark_parts(static_cast<size_t>(e), &parts);
    std::vector<Arenas> arenas(programs.size());
    // Bodies come after their owners, so backwards.
    for (size_t i = programs.size(); i-- > 0;) {
      std::set<int64_t> needed;  // memories of bodies
      for (Table& s : programs[i].tables("steps"))
        for (const int64_t sub : s.list("subprograms"))
          if (sub >= 0 && static_cast<size_t>(sub) < arenas.size())
            for (const auto& [memory, bytes] : arenas[static_cast<size_t>(sub)]) needed.insert(memory);
      plan_regions(profile, plans[i], !owned[i], needed);
      std::vector<Table>& regions = plans[i].tables("regions");
      const std::vector<uint64_t> ends = plan_program(programs[i], plans[i], i, !owned[i], arenas);
      for (size_t r = 0; r < ends.size(); ++r) {
        regions[r].set("bytes", static_cast<int64_t>(ends[r]));
        arenas[i][regions[r].get("memory_kind")] = ends[r];
      }
    }
    std::vector<Table>& kept = profile.tables("plans");
    kept.clear();
    for (size_t i = 0; i < plans.size(); ++i)
      if (parts[i]) kept.push_back(std::move(plans[i]));
    profile["plans"].present = true;
  }

  void mark_parts(size_t program, std::vector<bool>* parts) {
    if ((*parts)[program]) return;
    (*parts)[program] = true;
    for (Table& s : root_.tables("programs")[program].tables("steps"))
      for (const int64_t sub : s.list("subprograms"))
        if (sub >= 0 && static_cast<size_t>(sub) < parts->size()) mark_parts(static_cast<size_t>(sub), parts);
  }

  using Arenas = std::map<int64_t, uint64_t>;  // a program's bytes by memory

  // One of the host's; others as they are, if they are memory of a device, of a body's one of each,
  // ascending; and those that its own bodies need.
  static void plan_regions(Table& profile, Table& plan, bool entry, const std::set<int64_t>& needed) {
    std::vector<Table>& regions = plan.tables("regions");
    plan["regions"].present = true;
    if (regions.empty()) regions.emplace_back(plan.type->fields[plan.type->id("regions")].table);
    regions.resize(std::min<size_t>(regions.size(), 16), regions[0]);
    regions[0].set("memory_kind", 0);
    const auto backends = static_cast<int64_t>(profile["backends"].texts.size());
    std::set<int64_t> seen;
    for (size_t r = 1; r < regions.size(); ++r) {
      const int64_t memory = regions[r].get("memory_kind");
      if (memory < 1 || memory > backends)
        regions.resize(r, regions[0]);
      else
        seen.insert(memory);
    }
    if (!entry) {
      seen.insert(needed.begin(), needed.end());
      seen.erase(0);
      regions.resize(1 + std::min<size_t>(seen.size(), 15), regions[0]);
      size_t r = 1;
      for (const int64_t memory : seen)
        if (r < regions.size()) regions[r++].set("memory_kind", memory);
      return;
    }
    for (const int64_t memory : needed) {
      if (memory == 0 || seen.count(memory) > 0 || regions.size() == 16) continue;
      regions.push_back(regions[0]);
      regions.back().set("memory_kind", memory);
    }
  }

  // Everything side by side, in the region where it was. Returns the bytes of each region.
  std::vector<uint64_t> plan_program(Table& program, Table& plan, size_t index, bool entry,
                                     const std::vector<Arenas>& arenas) {
    const size_t regions = plan.tables("regions").size();
    const TableType* place_type = plan.type->fields[plan.type->id("placements")].table;
    const TableType* step_type = plan.type->fields[plan.type->id("steps")].table;
    const auto end = static_cast<int64_t>(program.tables("steps").size());
    std::vector<bool> captured(program.tables("values").size());
    if (!entry) mark_captured(index, program, &captured);
    std::vector<Table> placements;
    std::vector<uint64_t> ends(regions, 0);
    std::vector<size_t> home(program.tables("values").size(), 0);
    for (Table& p : plan.tables("placements")) {
      const auto v = static_cast<uint64_t>(p.get("value")), r = static_cast<uint64_t>(p.get("region"));
      if (v < home.size() && r < regions) home[v] = r;
    }
    for (size_t v = 0; v < program.tables("values").size(); ++v) {
      const Table& value = program.tables("values")[v];
      const int64_t kind = value.get("kind");
      if (kind == 1 || kind == 4 || captured[v]) continue;
      int64_t bytes = 0;
      if (!small(fact_of(value), &bytes)) bytes = 0;
      Table p(place_type);
      uint64_t& at = ends[home[v]];
      p.set("value", static_cast<int64_t>(v));
      p.set("region", static_cast<int64_t>(home[v]));
      p.set("offset", static_cast<int64_t>(at));
      p.set("bytes", bytes);
      p.set("first_step", -1);
      p.set("last_step", end);
      placements.push_back(std::move(p));
      at += padded(static_cast<uint64_t>(bytes));
    }
    plan.set("program", static_cast<int64_t>(index));
    plan["placements"].present = plan["steps"].present = true;
    plan["placements"].tables = std::move(placements);
    std::vector<Table>& steps = plan.tables("steps");
    steps.resize(static_cast<size_t>(end), Table(step_type));
    for (size_t s = 0; s < steps.size(); ++s) {
      uint64_t workspace = s < workspaces_[index].size() ? workspaces_[index][s] : 0;
      Arenas bodies;
      for (const int64_t sub : program.tables("steps")[s].list("subprograms"))
        if (sub >= 0 && static_cast<size_t>(sub) < arenas.size())
          for (const auto& [memory, bytes] : arenas[static_cast<size_t>(sub)])
            bodies[memory] = std::max(bodies[memory], bytes);
      workspace = std::max(workspace, bodies[0]);
      workspace = padded(workspace + 1024);
      // Places of the results; a copy, which may be a transfer, takes none.
      size_t region = 0;
      const bool control = !program.tables("steps")[s].list("subprograms").empty();
      for (const int64_t v : program.tables("steps")[s].list("outputs"))
        if (!control && v >= 0 && static_cast<size_t>(v) < home.size()) region = home[static_cast<size_t>(v)];
      if (regions > 1 && program.tables("steps")[s].get("op") == static_cast<int64_t>(Op::kCopy))
        workspace = 0;
      uint64_t& at = ends[region];
      steps[s].set("elided", 0);
      steps[s].set("in_order", 0);
      steps[s].set("workspace_region", static_cast<int64_t>(region));
      steps[s].set("workspace_offset", static_cast<int64_t>(at));
      steps[s].set("workspace_bytes", static_cast<int64_t>(workspace));
      at += workspace;
      plan_device_workspaces(plan, steps[s], bodies, &ends);
    }
    for (uint64_t& end : ends) end += 64;
    return ends;
  }

  static void plan_device_workspaces(Table& plan, Table& step, const Arenas& bodies,
                                     std::vector<uint64_t>* ends) {
    std::vector<Table> there;
    for (const auto& [memory, bytes] : bodies)
      for (size_t r = 1; memory > 0 && r < ends->size(); ++r) {
        if (plan.tables("regions")[r].get("memory_kind") != memory) continue;
        Table workspace(step.type->fields[step.type->id("device_workspaces")].table);
        workspace.set("region", static_cast<int64_t>(r));
        workspace.set("offset", static_cast<int64_t>((*ends)[r]));
        workspace.set("bytes", static_cast<int64_t>(bytes));
        there.push_back(std::move(workspace));
        (*ends)[r] += bytes;
        break;
      }
    step["device_workspaces"].present = !there.empty();
    step["device_workspaces"].tables = std::move(there);
  }

  void mark_captured(size_t index, Table& program, std::vector<bool>* captured) {
    for (Table& owner : root_.tables("programs"))
      for (Table& s : owner.tables("steps")) {
        const auto subs = s.list("subprograms");
        if (std::find(subs.begin(), subs.end(), static_cast<int64_t>(index)) == subs.end()) continue;
        const auto ints = s.list("ints");
        const bool loop = s.get("op") == static_cast<int64_t>(Op::kLoop);
        const auto own = loop ? 2 + (ints.size() > 1 ? static_cast<uint64_t>(ints[1]) : 0) : 0;
        std::vector<Table>& inputs = program.tables("inputs");
        for (size_t i = own; i < inputs.size(); ++i) {
          const auto v = static_cast<size_t>(inputs[i].get("value"));
          if (v < captured->size()) (*captured)[v] = true;
        }
      }
  }

  ModelFile& model_;
  Table& root_;
  bool offsets_moved_ = false;
  std::vector<bool> seen_;
  std::vector<std::vector<uint64_t>> workspaces_;
};

}  // namespace

void repair(ModelFile* model) { Repair(model).run(); }

}  // namespace sinter::fuzz
