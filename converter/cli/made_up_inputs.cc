#include "converter/cli/made_up_inputs.h"

#include <random>
#include <stdexcept>

#include "converter/cli/host_session.h"
#include "converter/ir/builder.h"
#include "converter/quantize/samples/made_up_inputs.h"

namespace sinter::convert {

Arrays made_up_inputs(const Model& model, uint32_t entry) {
  Arrays arrays;
  std::minstd_rand random(1);
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    PortInfo port = model.input(i, entry);
    port.dtype = given_type(port);
    const Dims dims(port.dims.begin(), port.dims.end());
    std::vector<double> items(static_cast<size_t>(element_count(dims)));
    for (double& x : items) {
      const double unit = static_cast<double>(random() % 2001) / 1000.0 - 1.0;
      x = is_float(port.dtype) ? unit : static_cast<double>(random() % 2);
    }
    ConstantPtr wide = Constant::of<double>(DType::kFloat64, dims, items);
    std::vector<ConstantPtr> cast;
    if (!evaluate(CastAttrs{static_cast<int64_t>(port.dtype), 1}, {wide}, 1, &cast).ok())
      throw std::runtime_error("the inputs cannot be generated; give --inputs");
    arrays.emplace_back(port.name, cast[0]);
  }
  return arrays;
}

Arrays random_inputs(const Model& model, uint64_t seed, uint32_t entry) {
  MadeUpInputs made(MadeUpInputs::Integers::kVaried, seed);
  Arrays arrays;
  for (uint32_t i = 0; i < model.input_count(entry); ++i) {
    const PortInfo port = model.input(i, entry);
    arrays.emplace_back(port.name,
                        made.next(given_type(port), Dims(port.dims.begin(), port.dims.end()), -1, 1));
  }
  return arrays;
}

}  // namespace sinter::convert
