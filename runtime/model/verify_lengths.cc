// Lengths that the caller gives, and the axes of public inputs that have them.
#include "runtime/model/verify.h"

namespace sinter::detail {

Status verify_lengths(const fb::Program& program, bool entry) {
  const uint32_t count = length(program.lengths());
  SINTER_RETURN_UNLESS(entry || count == 0, corrupt("the caller of a subprogram gives lengths"));
  SINTER_RETURN_UNLESS(count <= kMaxLengths,
                       unsupported("the caller of a program gives more than %a lengths", kMaxLengths));
  uint32_t used = 0;  // a bit for each
  for (uint32_t i = 0; i < length(program.inputs()) && entry; ++i) {
    const fb::Port& port = *program.inputs()->Get(i);
    const auto at = [&](const char* why) { return corrupt(why).at(Where::kInput, static_cast<int32_t>(i)); };
    const fb::Value& value = *program.values()->Get(port.value());
    if (length(value.bounded_dims()) == 0) continue;
    SINTER_RETURN_UNLESS(port.dims() == nullptr, at("the public dims of a bounded input are not its own"));
    uint32_t axes = 0;
    for (const fb::BoundedDim* e : *value.bounded_dims()) {
      const uint32_t axis = uint32_t{1} << e->axis();  // verified: below kMaxRank
      SINTER_RETURN_UNLESS((axes & axis) == 0, at("an axis of an input has two lengths"));
      axes |= axis;
      const uint32_t n = find_length(program, e->length());
      SINTER_RETURN_UNLESS(n < count, at("the length of an input is not given by the caller"));
      SINTER_RETURN_UNLESS(
          items(value.dims())[static_cast<size_t>(e->axis())] == program.lengths()->Get(n)->maximum(),
          at("a bounded axis of an input does not have the maximum of its length"));
      used |= uint32_t{1} << n;
    }
  }
  for (uint32_t n = 0; n < count; ++n) {
    const fb::Length& given = *program.lengths()->Get(n);
    SINTER_RETURN_UNLESS(given.value() < length(program.values()),
                         corrupt("a length that the caller gives is a value that does not exist"));
    SINTER_RETURN_UNLESS((used >> n & 1) != 0 && given.minimum() >= 0 && given.minimum() <= given.maximum() &&
                             given.name() != nullptr && given.name()->size() > 0,
                         corrupt("a length that the caller gives has no axis, no name or an impossible range")
                             .at(Where::kValue, static_cast<int32_t>(given.value())));
  }
  return ok_status();
}

}  // namespace sinter::detail
