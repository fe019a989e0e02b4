#include "converter/cli/file_work.h"

#include <vector>

namespace sinter::convert {
namespace {

CallShape shape_of(const fb::Program& program, const fb::Step& step, const void* attributes) {
  CallShape call(detail::step_op(step), attributes);
  const auto add = [&](const auto* ids, std::vector<CallShape::Operand>* operands) {
    for (const int32_t id : detail::items(ids)) {
      if (id < 0) {
        operands->push_back({});
        continue;
      }
      const fb::Value& v = *program.values()->Get(static_cast<uint32_t>(id));
      const bool constant = v.kind() == fb::ValueKind::Constant || v.kind() == fb::ValueKind::Prepared;
      operands->push_back({detail::items(v.dims()), true, constant});
    }
  };
  add(step.inputs(), &call.inputs);
  add(step.outputs(), &call.outputs);
  return call;
}

}  // namespace

TypedProducts multiply_adds(const FileView& view, uint32_t program, uint32_t s) {
  const fb::Program& of = view.program(program);
  const fb::Step& step = *of.steps()->Get(s);
  detail::AttrStorage attributes;
  (void)detail::decode_attrs(step, &attributes);  // verified
  if (detail::is_control(step)) {
    std::vector<TypedProducts> bodies;
    for (const uint32_t body : detail::items(step.subprograms())) bodies.push_back(multiply_adds(view, body));
    return multiply_adds(detail::step_op(step), &attributes, bodies);
  }
  const double count = multiply_adds(shape_of(of, step, &attributes));
  if (count == 0) return {};
  const auto first = static_cast<uint32_t>(detail::items(step.inputs())[0]);
  return {{static_cast<DType>(of.values()->Get(first)->dtype()), count}};
}

TypedProducts multiply_adds(const FileView& view, uint32_t program) {
  TypedProducts sum;
  for (uint32_t s = 0; s < detail::length(view.program(program).steps()); ++s)
    for (const auto& [dtype, count] : multiply_adds(view, program, s)) sum[dtype] += count;
  return sum;
}

}  // namespace sinter::convert
