// The checks of a whole profile: the programs that it plans, and its entries, which must be the same to
// callers as those of other profiles.
#include <cstring>

#include "runtime/model/verify.h"

namespace sinter::detail {
namespace {

// Returns the first state from value v on, or the number of values.
uint32_t next_state(const fb::Program& program, uint32_t v) {
  while (v < length(program.values()) && program.values()->Get(v)->kind() != fb::ValueKind::State) ++v;
  return v;
}

// The places of an entry's states in the memory that sessions share for them: the regions that hold state,
// one after another.
class StatePlaces {
 public:
  // The plan is verified.
  StatePlaces(const fb::Program& program, const fb::ProgramPlan& plan) : plan_(plan) {
    uint32_t holding = 0;  // a bit for each region
    for (uint32_t v = next_state(program, 0); v < length(program.values()); v = next_state(program, v + 1))
      holding |= uint32_t{1} << find_placement(plan, v)->region();
    for (uint32_t r = 0; r < length(plan.regions()); ++r)
      for (uint32_t before = 0; before < r; ++before)
        if ((holding >> before & 1) != 0 && memory(before) == memory(r))
          start_[r] += plan.regions()->Get(before)->bytes();
  }
  struct Place {
    uint8_t memory;
    uint64_t offset;
    bool operator==(const Place&) const = default;
  };
  Place of(uint32_t state) const {
    const fb::Placement& p = *find_placement(plan_, state);
    return {memory(p.region()), start_[p.region()] + p.offset()};
  }

 private:
  uint8_t memory(uint32_t region) const { return plan_.regions()->Get(region)->memory_kind(); }

  const fb::ProgramPlan& plan_;
  uint64_t start_[kMaxRegions] = {};
};

class ProfileVerifier {
 public:
  ProfileVerifier(const ModelState& model, uint32_t index, std::span<ProgramFacts> facts)
      : root_(*model.root), profile_(*root_.profiles()->Get(index)), mark_(index + 1), facts_(facts) {}

  // Checks programs, entries and parts, whose plans need not be verified. Frames of both are gone while plans
  // are verified.
  [[gnu::noinline]] Status run() {
    SINTER_RETURN_IF_ERROR(check_name());
    SINTER_RETURN_IF_ERROR(check_plans());
    SINTER_RETURN_IF_ERROR(check_entries());
    return check_parts();
  }

  // Checks that the states of all entries are the same, at the same places, so that sessions of several
  // entries can share them (SharedState). The plans are verified.
  [[gnu::noinline]] Status check_places_of_states() const {
    const auto entries = items(profile_.entries());
    if (entries.size() == 1) return ok_status();
    const fb::Program& first = *facts_[entries[0]].program;
    const StatePlaces wanted(first, *find_plan(profile_, entries[0]));
    for (const uint32_t entry : entries.subspan(1)) {
      const fb::Program& program = *facts_[entry].program;
      const StatePlaces places(program, *find_plan(profile_, entry));
      const auto at = [&](Status status) { return status.at(Where::kProgram, static_cast<int32_t>(entry)); };
      SINTER_RETURN_UNLESS(same_states(program, first),
                           at(corrupt("its states differ from those of the profile's first entry")));
      uint32_t v = next_state(program, 0), w = next_state(first, 0);
      for (; v < length(program.values()) && w < length(first.values());
           v = next_state(program, v + 1), w = next_state(first, w + 1))
        SINTER_RETURN_UNLESS(
            places.of(v) == wanted.of(w),
            at(corrupt("value %a is a state in another place than in the profile's first entry", v)));
      SINTER_RETURN_UNLESS(v == length(program.values()) && w == length(first.values()),
                           at(corrupt("it has another number of states than the profile's first entry")));
    }
    return ok_status();
  }

 private:
  Status check_name() const {
    for (uint32_t i = 0; i + 1 < mark_; ++i)
      SINTER_RETURN_UNLESS(std::strcmp(text(root_.profiles()->Get(i)->name()), text(profile_.name())) != 0,
                           corrupt("two profiles have the same name"));
    return ok_status();
  }

  Status check_plans() {
    uint32_t next = 0;  // the first program that may follow
    for (uint32_t i = 0; i < length(profile_.plans()); ++i) {
      const uint32_t program = profile_.plans()->Get(i)->program();
      SINTER_RETURN_UNLESS(program >= next && program < facts_.size(),
                           corrupt("a plan is out of order or of a program that does not exist"));
      next = program + 1;
      facts_[program].planned = mark_;
    }
    return ok_status();
  }

  Status check_entries() {
    const auto entries = items(profile_.entries());
    const auto first = items(root_.profiles()->Get(0)->entries());
    SINTER_RETURN_UNLESS(!entries.empty() && entries.size() == first.size(),
                         corrupt("a profile has %a entries and the first one has %b",
                                 static_cast<int64_t>(entries.size()), static_cast<int64_t>(first.size())));
    for (size_t i = 0; i < entries.size(); ++i) {
      SINTER_RETURN_UNLESS(
          entries[i] < facts_.size() && facts_[entries[i]].owner == nullptr &&
              facts_[entries[i]].planned == mark_ && facts_[entries[i]].listed != mark_,
          corrupt("an entry of a profile is a part of a program, is not planned, or is listed twice"));
      facts_[entries[i]].listed = mark_;
      const fb::Program &program = *facts_[entries[i]].program, &model = *facts_[first[i]].program;
      SINTER_RETURN_UNLESS(same_ports(program, program.inputs(), model, model.inputs()) &&
                               same_ports(program, program.outputs(), model, model.outputs()),
                           corrupt("a profile's inputs or outputs differ from those of the first one"));
      SINTER_RETURN_UNLESS(same_lengths(program, model),
                           corrupt("a profile's bounded inputs differ from those of the first one"));
      SINTER_RETURN_UNLESS(same_states(program, model),
                           corrupt("a profile's states differ from those of the first one"));
    }
    return ok_status();
  }

  using Ports = flatbuffers::Vector<flatbuffers::Offset<fb::Port>>;
  // Compares ports by name, dtype and public dims.
  static bool same_ports(const fb::Program& p, const Ports* ports, const fb::Program& q,
                         const Ports* others) {
    if (&p == &q) return true;
    if (length(ports) != length(others)) return false;
    for (uint32_t i = 0; i < length(ports); ++i) {
      const fb::Port &a = *ports->Get(i), &b = *others->Get(i);
      const fb::Value &x = *p.values()->Get(a.value()), &y = *q.values()->Get(b.value());
      const auto dims = port_dims(a, x), wanted = port_dims(b, y);
      if (std::strcmp(text(a.name()), text(b.name())) != 0 || x.dtype() != y.dtype() ||
          dims.size() != wanted.size())
        return false;
      for (size_t d = 0; d < dims.size(); ++d)
        if (dims[d] != wanted[d]) return false;
    }
    return true;
  }

  // Compares the lengths of the inputs' axes, by their place in the list; the inputs are the same.
  static bool same_lengths(const fb::Program& p, const fb::Program& q) {
    if (&p == &q) return true;
    if (length(p.lengths()) != length(q.lengths())) return false;
    for (uint32_t n = 0; n < length(p.lengths()); ++n) {
      const fb::Length &a = *p.lengths()->Get(n), &b = *q.lengths()->Get(n);
      if (a.minimum() != b.minimum() || a.maximum() != b.maximum() ||
          std::strcmp(text(a.name()), text(b.name())) != 0)
        return false;
    }
    for (uint32_t i = 0; i < length(p.inputs()); ++i) {
      const auto* one = p.values()->Get(p.inputs()->Get(i)->value())->bounded_dims();
      const auto* other = q.values()->Get(q.inputs()->Get(i)->value())->bounded_dims();
      if (length(one) != length(other)) return false;
      for (uint32_t e = 0; e < length(one); ++e)
        if (one->Get(e)->axis() != other->Get(e)->axis() ||
            find_length(p, one->Get(e)->length()) != find_length(q, other->Get(e)->length()))
          return false;
    }
    return true;
  }

  // Compares named states by names, dtype and dims, and whether they begin with the same numbers.
  static bool same_states(const fb::Program& p, const fb::Program& q) {
    if (&p == &q) return true;
    if (length(p.states()) != length(q.states())) return false;
    for (uint32_t i = 0; i < length(p.states()); ++i) {
      const fb::StatePort &a = *p.states()->Get(i), &b = *q.states()->Get(i);
      const fb::Value &x = *p.values()->Get(a.value()), &y = *q.values()->Get(b.value());
      const auto dims = items(x.dims()), wanted = items(y.dims());
      if (std::strcmp(text(a.input()), text(b.input())) != 0 ||
          std::strcmp(text(a.output()), text(b.output())) != 0 || x.dtype() != y.dtype() ||
          x.initial() != y.initial() || dims.size() != wanted.size())
        return false;
      for (size_t d = 0; d < dims.size(); ++d)
        if (dims[d] != wanted[d]) return false;
    }
    return true;
  }

  // Checks that programs and their subprograms are planned together, and nothing else is.
  Status check_parts() const {
    for (uint32_t i = 0; i < length(profile_.plans()); ++i) {
      const ProgramFacts& f = facts_[profile_.plans()->Get(i)->program()];
      const auto at = [&](Status s) { return s.at(Where::kProgram, static_cast<int32_t>(f.index)); };
      SINTER_RETURN_UNLESS(
          f.owner == nullptr ? f.listed == mark_ : facts_[f.owner_index].planned == mark_,
          at(corrupt("a profile plans a program that is neither an entry nor a part of a planned one")));
      for (uint32_t s = 0; s < length(f.program->steps()); ++s)
        for (const uint32_t sub : items(f.program->steps()->Get(s)->subprograms()))
          SINTER_RETURN_UNLESS(facts_[sub].planned == mark_,
                               at(corrupt("a profile does not plan a subprogram")));
    }
    return ok_status();
  }

  const fb::Model& root_;
  const fb::Profile& profile_;
  const uint32_t mark_;
  const std::span<ProgramFacts> facts_;
};

}  // namespace

Status verify_profile(const ModelState& model, uint32_t index, std::span<ProgramFacts> facts,
                      BumpArena scratch) {
  ProfileVerifier verifier(model, index, facts);
  SINTER_RETURN_IF_ERROR(verifier.run());
  const fb::Profile& profile = *model.root->profiles()->Get(index);
  locate_captured(profile, facts);
  for (const fb::ProgramPlan* plan : *profile.plans()) {
    const Status status = verify_plan(model, profile, facts, plan->program(), scratch);
    if (!status.ok()) return status.at(Where::kProgram, static_cast<int32_t>(plan->program()));
  }
  return verifier.check_places_of_states();
}

}  // namespace sinter::detail
