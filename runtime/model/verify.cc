// The verifier's frame: lists, constants, the tree of programs; then each program and each plan.
#include "runtime/model/verify.h"

namespace sinter::detail {
namespace {

// Returns the operands of the step with the most, as far as a step may have them.
uint32_t most_operands(const fb::Model& root) {
  uint32_t most = 0;
  for (const fb::Program* program : *root.programs())
    for (const auto* steps : {program->steps(), program->prepare()})
      for (uint32_t s = 0; s < length(steps); ++s) {
        const fb::Step& step = *steps->Get(s);
        const uint64_t count = uint64_t{length(step.inputs())} + length(step.outputs());
        if (count > most && count <= kMaxOperands) most = static_cast<uint32_t>(count);
      }
  return most;
}

// The facts about programs, with lives and port marks of all of them, since a plan refers to its owner's.
struct VerifyScratch {
  ProgramFacts* facts = nullptr;
  bool short_of_memory = false;

  VerifyScratch(const fb::Model& root, BumpArena& arena) {
    const uint32_t programs = length(root.programs());
    facts = arena.allocate_array<ProgramFacts>(programs);
    TensorView* views = arena.allocate_array<TensorView>(most_operands(root));
    for (uint32_t i = 0; i < programs; ++i) {
      const uint32_t n = length(root.programs()->Get(i)->values());
      Life* lives = arena.allocate_array<Life>(n);
      uint8_t* ports = arena.allocate_array<uint8_t>(n);
      if (facts == nullptr) continue;
      if (lives == nullptr || ports == nullptr || views == nullptr) {
        short_of_memory = true;
        return;
      }
      facts[i].views = views;
      facts[i].lives = {lives, n};
      facts[i].ports = {ports, n};
    }
  }
};

// Equal lists and tables can be shared. A file that shares them to appear much larger than it is (and cost
// time) is refused: the items of all lists, counted wherever a list is referred to, exceed its bytes.
Status check_total_lengths(const fb::Model& root, uint64_t flatbuffer_bytes) {
  uint64_t total = 0;
  const auto add = [&](uint64_t n) { total += n; };
  for (const fb::Constant* c : *root.constants()) add(length(c->dims()) + 1);
  for (const fb::Program* p : *root.programs()) {
    add(uint64_t{length(p->values())} + length(p->steps()) + length(p->prepare()));
    add(uint64_t{length(p->inputs())} + length(p->outputs()) + length(p->lengths()));
    if (total > flatbuffer_bytes) break;
    if (p->values() != nullptr)
      for (const fb::Value* v : *p->values()) add(uint64_t{length(v->dims())} + length(v->bounded_dims()));
    for (const auto* steps : {p->steps(), p->prepare()}) {
      if (steps == nullptr) continue;
      for (const fb::Step* s : *steps)
        add(uint64_t{length(s->inputs())} + length(s->outputs()) + length(s->ints()) + length(s->floats()) +
            length(s->bytes()) + length(s->subprograms()));
    }
  }
  for (const fb::Profile* p : *root.profiles()) {
    add(uint64_t{length(p->backends())} + length(p->entries()) + length(p->plans()));
    if (total > flatbuffer_bytes) break;
    if (p->plans() == nullptr) continue;
    for (const fb::ProgramPlan* plan : *p->plans()) {
      add(uint64_t{length(plan->regions())} + length(plan->steps()) + length(plan->placements()));
      if (total > flatbuffer_bytes) break;
      if (plan->steps() != nullptr)
        for (const fb::StepPlan* s : *plan->steps())
          add(uint64_t{length(s->candidates())} + length(s->device_workspaces()));
      if (plan->placements() != nullptr)
        for (const fb::Placement* q : *plan->placements()) add(length(q->strides()));
    }
  }
  add(length(root.metadata()));
  for (uint32_t i = 0; i < length(root.labels()); ++i) add(length(root.labels()->Get(i)->texts()) + 1);
  SINTER_RETURN_UNLESS(total <= flatbuffer_bytes, corrupt("the model's lists overlap"));
  return ok_status();
}

template <class T>
bool aligned(const flatbuffers::Vector<T>* list) {
  return length(list) == 0 || reinterpret_cast<uintptr_t>(list->Data()) % alignof(T) == 0;
}

Status check_alignments(const fb::Model& root) {
  bool good = true;
  for (const fb::Constant* c : *root.constants()) good = good && aligned(c->dims());
  for (const fb::Program* p : *root.programs()) {
    if (p->values() != nullptr)
      for (const fb::Value* v : *p->values()) good = good && aligned(v->dims());
    for (const auto* steps : {p->steps(), p->prepare()})
      if (steps != nullptr)
        for (const fb::Step* s : *steps) good = good && aligned(s->ints()) && aligned(s->floats());
    for (const auto* ports : {p->inputs(), p->outputs()})
      if (ports != nullptr)
        for (const fb::Port* port : *ports) good = good && aligned(port->dims());
  }
  for (const fb::Profile* p : *root.profiles())
    if (p->plans() != nullptr)
      for (const fb::ProgramPlan* plan : *p->plans())
        if (plan->placements() != nullptr)
          for (const fb::Placement* q : *plan->placements()) good = good && aligned(q->strides());
  SINTER_RETURN_UNLESS(good, corrupt("a list of numbers is not aligned"));
  return ok_status();
}

Status check_constants(const ModelState& model) {
  for (const fb::Constant* c : *model.root->constants()) {
    const auto dtype = static_cast<DType>(c->dtype());
    int64_t bytes = 0;
    SINTER_RETURN_UNLESS(bit_width(dtype) > 0 && length(c->dims()) <= kMaxRank &&
                             checked_bytes(dtype, items(c->dims()), &bytes),
                         corrupt("a constant has an impossible type or shape"));
    if (is_left_out(*c)) {
      SINTER_RETURN_UNLESS(c->offset() == 0, corrupt("a constant that is left out has a place"));
      continue;
    }
    SINTER_RETURN_UNLESS(c->segment() < model.segments.size(),
                         corrupt("a constant refers to a segment that does not exist"));
    const format::Segment& segment = model.segments[c->segment()];
    SINTER_RETURN_UNLESS(segment.kind == static_cast<uint32_t>(format::SegmentKind::kWeights),
                         corrupt("a constant refers to a segment that does not hold weights"));
    uint64_t end = 0;
    SINTER_RETURN_UNLESS(c->offset() % format::kAlignment == 0 &&
                             checked_add<uint64_t>(c->offset(), static_cast<uint64_t>(bytes), &end) &&
                             checked_add<uint64_t>(end, format::kSegmentPadding, &end) &&
                             end <= segment.bytes,
                         corrupt("a constant extends beyond its segment"));
  }
  return ok_status();
}

// Sets every program's owner. Ownership is a forest: at most one owner each, chains of kMaxNesting at most.
Status find_owners(const ModelState& model, ProgramFacts* facts) {
  const auto& programs = *model.root->programs();
  for (uint32_t i = 0; i < programs.size(); ++i) facts[i].program = programs.Get(i), facts[i].index = i;
  for (uint32_t i = 0; i < programs.size(); ++i) {
    const auto* steps = programs.Get(i)->steps();
    for (uint32_t s = 0; s < length(steps); ++s) {
      const auto wrong = [&](const char* why) { return corrupt(why).at_step(s, i); };
      const fb::Step& step = *steps->Get(s);
      const uint32_t expected = step_op(step) == Op::kIf ? 2 : step_op(step) == Op::kLoop ? 1 : 0;
      SINTER_RETURN_UNLESS(length(step.subprograms()) == expected,
                           wrong("the step does not have the subprograms that its operation takes"));
      for (const uint32_t sub : items(step.subprograms())) {
        SINTER_RETURN_UNLESS(sub < programs.size() && facts[sub].owner == nullptr,
                             wrong("a subprogram does not exist or belongs to two steps"));
        facts[sub].owner = programs.Get(i);
        facts[sub].owner_index = i;
        facts[sub].owner_step = &step;
        facts[sub].owner_step_index = s;
      }
    }
  }
  for (uint32_t i = 0; i < programs.size(); ++i) {
    int depth = 0;
    uint32_t p = i;
    for (; facts[p].owner != nullptr; p = facts[p].owner_index)
      SINTER_RETURN_UNLESS(
          ++depth <= kMaxNesting,
          corrupt("subprograms are nested too deeply").at(Where::kProgram, static_cast<int32_t>(i)));
    facts[i].entry = p;
  }
  return ok_status();
}

}  // namespace

uint64_t open_scratch_bytes(const fb::Model* root) {
  if (root->programs() == nullptr) return 0;
  BumpArena arena;
  VerifyScratch{*root, arena};
  size_t most = 0;
  const auto measure = [&](const fb::Program& p, size_t more) {
    BumpArena plan = arena;
    measure_plan(length(p.values()), length(p.steps()) + more, plan);
    if (plan.used() > most) most = plan.used();
  };
  for (const fb::Program* p : *root->programs()) measure(*p, 0);
  if (root->profiles() == nullptr) return most;
  for (const fb::Profile* profile : *root->profiles()) {
    if (profile->plans() == nullptr) continue;
    for (const fb::ProgramPlan* plan : *profile->plans())
      if (const size_t more = device_workspaces(*plan);
          more > 0 && plan->program() < root->programs()->size())
        measure(*root->programs()->Get(plan->program()), more);
  }
  return most;
}

Status verify(const ModelState& model, std::span<std::byte> memory) {
  const fb::Model& root = *model.root;
  SINTER_RETURN_UNLESS(
      length(root.programs()) > 0 && length(root.profiles()) > 0 && root.constants() != nullptr,
      corrupt("the model lacks programs, profiles or its list of constants"));
  SINTER_RETURN_UNLESS(root.profiles()->size() <= kMaxProfiles,
                       unsupported("the model has more than %a profiles", kMaxProfiles));
  SINTER_RETURN_IF_ERROR(check_total_lengths(root, model.flatbuffer_bytes));
  SINTER_RETURN_IF_ERROR(check_alignments(root));
  SINTER_RETURN_IF_ERROR(check_constants(model));

  BumpArena arena(memory);
  const VerifyScratch scratch(root, arena);
  SINTER_RETURN_UNLESS(
      scratch.facts != nullptr && !scratch.short_of_memory && memory.size() >= open_scratch_bytes(&root),
      corrupt("the file states too little scratch memory"));
  SINTER_RETURN_IF_ERROR(find_owners(model, scratch.facts));
  const uint32_t programs = root.programs()->size();
  for (uint32_t i = 0; i < programs; ++i) {
    const Status status = verify_values(model, scratch.facts[i]);
    if (!status.ok()) return status.at(Where::kProgram, static_cast<int32_t>(i));
  }
  for (uint32_t i = 0; i < programs; ++i) {
    const Status status = verify_program(model, scratch.facts[i]);
    if (!status.ok()) return status.at(Where::kProgram, static_cast<int32_t>(i));
  }
  for (uint32_t i = 0; i < root.profiles()->size(); ++i)
    SINTER_RETURN_IF_ERROR(verify_profile(model, i, {scratch.facts, programs}, arena));
  for (uint32_t i = 0; i < programs; ++i)
    SINTER_RETURN_UNLESS(
        scratch.facts[i].planned != 0,
        corrupt("no profile plans the program").at(Where::kProgram, static_cast<int32_t>(i)));
  return verify_metadata(root);
}

}  // namespace sinter::detail
