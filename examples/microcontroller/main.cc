// A model in flash, run without an operating system, files or a heap: what `sinter embed` wrote is linked in,
// and one block of RAM serves it. Reads the inputs from input.bin and writes the outputs to output.bin (raw,
// in the model's order) by semihosting; a device has sensors and actuators there.
#include "board/semihosting.h"
#include "net.h"
#include "sinter/model.h"
#include "sinter/session.h"

namespace {

// Both the model's retained memory and the session.
alignas(sinter::kBufferAlignment) std::byte memory[NET_MEMORY_BYTES];

void print(const char* what, size_t number) {
  char digits[11] = {}, *at = digits + 10;
  do *--at = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  semihosting_print(what);
  semihosting_print(at);
  semihosting_print("\n");
}

int fail(const sinter::Model& model, const sinter::Status& status) {
  char text[160];
  model.format(status, text);
  semihosting_print(text);
  semihosting_print("\n");
  return 1;
}

}  // namespace

int main() {
  using namespace sinter;
  const std::span<const std::byte> file = std::as_bytes(std::span(net_model));
  const OpenOptions options{.kernels = net_kernels(), .stable = true};
  Result<Model> model = Model::open(file, memory, options);
  if (!model.ok()) return fail({}, model.status());
  print("stack of open: ", stack_used());
  print("open: ", Model::open_bytes(file, options).value());
  print("retained: ", model->retained_bytes());

  paint_stack();
  const std::span<std::byte> rest = std::span(memory).subspan(model->retained_bytes());
  Result<Session> session = Session::create(*model, rest, {});
  if (!session.ok()) return fail(*model, session.status());
  print("stack of create: ", stack_used());
  print("session: ", Session::requirements(*model, {}).value().bytes);

  const int32_t from = semihosting_open("input.bin", 9, 1);
  for (uint32_t i = 0; i < session->input_count(); ++i) {
    const TensorView input = session->input(i);
    if (semihosting_read(from, input.data, static_cast<uint32_t>(input.dense_bytes())) != 0)
      return semihosting_print("input.bin is shorter than the model's inputs\n"), 1;
  }
  paint_stack();
  if (const Status status = session->run(); !status.ok()) return fail(*model, status);
  print("stack of run: ", stack_used());
  const int32_t to = semihosting_open("output.bin", 10, 5);
  for (uint32_t i = 0; i < session->output_count(); ++i) {
    const TensorView output = session->output(i);
    if (semihosting_write(to, output.data, static_cast<uint32_t>(output.dense_bytes())) != 0)
      return semihosting_print("output.bin cannot be written\n"), 1;
  }
  semihosting_close(to);
  return 0;
}
