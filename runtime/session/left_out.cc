// Constants that the model's file lacks, because it holds what kernels read instead: packings of one machine.
//
// A session that finds these packings never asks for such a constant. Every other reader is refused here,
// before anything is prepared: a step of the program, a step of the prepare list, or a packing. Whatever else
// could read a constant (outputs, states, If and Loop) is refused when the model is opened.
#include "runtime/session/entry.h"

namespace sinter::detail {
namespace {

constexpr char kNotSearched[] =
    "the file has the step's constants packed alone; set SessionOptions::packed_in_file";
constexpr char kNotFound[] =
    "the file has the step's constants only as another machine, build, backend or plan packed them; use a "
    "file with constants, or convert again";

}  // namespace

Status Frame::check_present(const fb::Step& step, uint32_t without) const {
  const auto ins = items(step.inputs());
  for (size_t i = 0; i < ins.size(); ++i) {
    if (ins[i] < 0 || (i < 32 && (without >> i & 1) != 0)) continue;
    const int64_t constant = constant_of(ins[i]);
    if (constant < 0 ||
        !is_left_out(*entry->model.state()->root->constants()->Get(static_cast<uint32_t>(constant))))
      continue;
    const bool searched =
        entry->options.packed_in_file != nullptr || entry->options.packed_weights != nullptr;
    return unsupported(searched ? kNotFound : kNotSearched);
  }
  return ok_status();
}

}  // namespace sinter::detail
