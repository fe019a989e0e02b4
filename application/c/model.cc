// The C API of models.
#include <algorithm>
#include <utility>

#include "application/c/handles.h"
#include "application/text.h"

namespace sinter::c {
namespace {

OpenOptions open_options(const sinter_open_options& options) {
  OpenOptions open{.kernels = reference_kernels(),
                   .check_digests = options.skip_digests == 0,
                   .stable = options.stable != 0};
  if (options.public_key != nullptr) open.public_key = {options.public_key, 32};
  if (options.custom_ops != nullptr) open.custom_ops = {options.custom_ops, options.custom_op_count};
  return open;
}

Status open_model(std::span<const std::byte> file, FileMap* map, const sinter_open_options& options,
                  sinter_model** model) {
  const OpenOptions open = open_options(options);
  const Result<size_t> needed = Model::open_bytes(file, open);
  SINTER_RETURN_IF_ERROR(needed.status());
  std::byte* block = nullptr;
  SINTER_RETURN_IF_ERROR(take_block(options.memory, options.memory_bytes, kModelHandle + *needed, &block));
  const Result<sinter::Model> opened = Model::open(file, {block + kModelHandle, *needed}, open);
  if (!opened.ok()) {
    if (options.memory == nullptr) free_aligned(block);
    return opened.status();
  }
  *model = new (block) sinter_model;
  (*model)->model = *opened;
  (*model)->bytes = options.memory == nullptr ? kModelHandle + *needed : options.memory_bytes;
  (*model)->on_heap = options.memory == nullptr;
  if (map != nullptr) (*model)->map = std::move(*map);
  return ok_status();
}

std::span<const std::byte> file_of(const void* file, size_t bytes) {
  return {static_cast<const std::byte*>(file), bytes};
}
Status open_file(const char* path, const sinter_open_options& options, sinter_model** model) {
  Result<FileMap> map =
      FileMap::open(path, options.copy_file != 0 ? FileMap::Mode::kCopied : FileMap::Mode::kMapped);
  SINTER_RETURN_IF_ERROR(map.status());
  return open_model(map->bytes(), &*map, options, model);
}

// Writes "PATH: sentence".
sinter_code result_of(const char* path, const Status& status, sinter_error* error) {
  if (error != nullptr && !status.ok()) {
    error->code = static_cast<int32_t>(status.code);
    Text text{error->text};
    text.put("%s: ", path);
    format_status(status, text.rest());
    return static_cast<sinter_code>(status.code);
  }
  return result(status, error);
}

bool has_entry(const sinter_model* model, uint32_t entry) {
  return model != nullptr && entry < model->model.entry_count();
}
sinter_quantization quantization_of(const PortInfo& port) { return {port.scale, port.zero_point}; }

}  // namespace
}  // namespace sinter::c

using namespace sinter::c;

extern "C" {

uint32_t sinter_abi_version(void) { return SINTER_ABI_VERSION; }
const char* sinter_version(void) { return SINTER_VERSION; }
const char* sinter_type_name(int32_t type) {
  const auto count = static_cast<int32_t>(sinter::DType::kCount);
  return sinter::dtype_name(static_cast<sinter::DType>(type >= 0 && type < count ? type : count));
}

sinter_code sinter_model_open(const char* path, const sinter_open_options* given, sinter_model** model,
                              sinter_error* error) {
  if (path == nullptr || model == nullptr) return result(kNull, error);
  sinter_open_options options;
  if (const sinter::Status status = complete(given, &options); !status.ok()) return result(status, error);
  return result_of(path, open_file(path, options, model), error);
}

sinter_code sinter_model_open_bytes(const void* file, size_t bytes, const sinter_open_options* given,
                                    sinter_model** model, sinter_error* error) {
  if (file == nullptr || model == nullptr) return result(kNull, error);
  sinter_open_options options;
  sinter::Status status = complete(given, &options);
  if (status.ok()) status = open_model(file_of(file, bytes), nullptr, options, model);
  return result(status, error);
}

sinter_code sinter_model_memory(const void* file, size_t bytes, const sinter_open_options* given,
                                size_t* needed, sinter_error* error) {
  if (file == nullptr || needed == nullptr) return result(kNull, error);
  sinter_open_options options;
  if (const sinter::Status status = complete(given, &options); !status.ok()) return result(status, error);
  const sinter::Result<size_t> inner = sinter::Model::open_bytes(file_of(file, bytes), open_options(options));
  if (inner.ok()) *needed = kModelHandle + *inner;
  return result(inner.status(), error);
}

size_t sinter_model_retained(const sinter_model* model) {
  return model != nullptr ? kModelHandle + model->model.retained_bytes() : 0;
}
size_t sinter_model_bytes(const sinter_model* model) { return model != nullptr ? model->bytes : 0; }
void sinter_model_close(sinter_model* model) { destroy(model); }

uint32_t sinter_model_entry_count(const sinter_model* model) {
  return model != nullptr ? model->model.entry_count() : 0;
}
int32_t sinter_model_find_entry(const sinter_model* model, const sinter_shape* shapes, size_t count) {
  if (model == nullptr || (shapes == nullptr && count > 0)) return -1;
  for (size_t i = 0; i < count; ++i)
    if (shapes[i].name == nullptr || shapes[i].rank < 0 || (shapes[i].dims == nullptr && shapes[i].rank > 0))
      return -1;
  const sinter::Model& of = model->model;
  const auto has = [&](uint32_t entry, const sinter_shape& shape) {
    return of.takes({shape.name, {shape.dims, static_cast<size_t>(shape.rank)}}, entry);
  };
  for (uint32_t entry = 0; entry < of.entry_count(); ++entry)
    if (std::all_of(shapes, shapes + count, [&](const sinter_shape& s) { return has(entry, s); }))
      return static_cast<int32_t>(entry);
  return -1;
}
uint32_t sinter_model_input_count(const sinter_model* model, uint32_t entry) {
  return has_entry(model, entry) ? model->model.input_count(entry) : 0;
}
uint32_t sinter_model_output_count(const sinter_model* model, uint32_t entry) {
  return has_entry(model, entry) ? model->model.output_count(entry) : 0;
}
sinter_code sinter_model_input(const sinter_model* model, uint32_t entry, uint32_t index,
                               sinter_tensor* input) {
  if (index >= sinter_model_input_count(model, entry) || input == nullptr) return SINTER_INVALID_ARGUMENT;
  describe(model->model.input(index, entry), nullptr, input);
  return SINTER_OK;
}
sinter_code sinter_model_input_range(const sinter_model* model, uint32_t entry, uint32_t index, int32_t axis,
                                     int64_t* minimum, int64_t* maximum) {
  if (index >= sinter_model_input_count(model, entry) || minimum == nullptr || maximum == nullptr ||
      axis < 0 || static_cast<size_t>(axis) >= model->model.input(index, entry).dims.size())
    return SINTER_INVALID_ARGUMENT;
  const sinter::AxisRange range = model->model.input_range(index, axis, entry);
  *minimum = range.minimum, *maximum = range.maximum;
  return SINTER_OK;
}
sinter_code sinter_model_output(const sinter_model* model, uint32_t entry, uint32_t index,
                                sinter_tensor* output) {
  if (index >= sinter_model_output_count(model, entry) || output == nullptr) return SINTER_INVALID_ARGUMENT;
  describe(model->model.output(index, entry), nullptr, output);
  return SINTER_OK;
}
sinter_code sinter_model_input_quantization(const sinter_model* model, uint32_t entry, uint32_t index,
                                            sinter_quantization* input) {
  if (index >= sinter_model_input_count(model, entry) || input == nullptr) return SINTER_INVALID_ARGUMENT;
  *input = quantization_of(model->model.input(index, entry));
  return SINTER_OK;
}
sinter_code sinter_model_output_quantization(const sinter_model* model, uint32_t entry, uint32_t index,
                                             sinter_quantization* output) {
  if (index >= sinter_model_output_count(model, entry) || output == nullptr) return SINTER_INVALID_ARGUMENT;
  *output = quantization_of(model->model.output(index, entry));
  return SINTER_OK;
}
int32_t sinter_model_find_input(const sinter_model* model, uint32_t entry, const char* name) {
  return has_entry(model, entry) && name != nullptr ? model->model.find_input(name, entry) : -1;
}
int32_t sinter_model_find_output(const sinter_model* model, uint32_t entry, const char* name) {
  return has_entry(model, entry) && name != nullptr ? model->model.find_output(name, entry) : -1;
}

uint32_t sinter_model_state_count(const sinter_model* model, uint32_t entry) {
  return has_entry(model, entry) ? model->model.state_count(entry) : 0;
}
sinter_code sinter_model_state(const sinter_model* model, uint32_t entry, uint32_t index,
                               sinter_state* state) {
  if (index >= sinter_model_state_count(model, entry) || state == nullptr) return SINTER_INVALID_ARGUMENT;
  const sinter::StateInfo info = model->model.state(index, entry);
  sinter_tensor tensor;
  describe(info, nullptr, &tensor);
  *state = {info.input, info.output, tensor.type, tensor.rank, {}, tensor.bytes, info.starts_at_zero ? 1 : 0};
  std::copy(std::begin(tensor.dims), std::end(tensor.dims), state->dims);
  return SINTER_OK;
}

uint32_t sinter_model_profile_count(const sinter_model* model) {
  return model != nullptr ? model->model.profile_count() : 0;
}
const char* sinter_model_profile_name(const sinter_model* model, uint32_t profile) {
  return profile < sinter_model_profile_count(model) ? model->model.profile_name(profile) : nullptr;
}
const char* sinter_model_profile_target(const sinter_model* model, uint32_t profile) {
  return profile < sinter_model_profile_count(model) ? model->model.profile_target(profile) : nullptr;
}
uint32_t sinter_model_default_profile(const sinter_model* model) {
  return model != nullptr ? model->model.default_profile() : 0;
}
const char* sinter_model_producer(const sinter_model* model) {
  return model != nullptr ? model->model.producer() : nullptr;
}

uint32_t sinter_model_metadata_count(const sinter_model* model) {
  return model != nullptr ? model->model.metadata_count() : 0;
}
const char* sinter_model_metadata_key(const sinter_model* model, uint32_t index) {
  return index < sinter_model_metadata_count(model) ? model->model.metadata_key(index) : nullptr;
}
const char* sinter_model_metadata_value(const sinter_model* model, uint32_t index) {
  return index < sinter_model_metadata_count(model) ? model->model.metadata_value(index) : nullptr;
}
const char* sinter_model_metadata(const sinter_model* model, const char* key) {
  return model != nullptr && key != nullptr ? model->model.metadata(key) : nullptr;
}
uint32_t sinter_model_label_count(const sinter_model* model, const char* output) {
  return model != nullptr && output != nullptr ? model->model.label_count(output) : 0;
}
const char* sinter_model_label(const sinter_model* model, const char* output, uint32_t index) {
  return model != nullptr && output != nullptr ? model->model.label(output, index) : nullptr;
}

uint32_t sinter_model_program_count(const sinter_model* model) {
  return model != nullptr ? model->model.program_count() : 0;
}
uint32_t sinter_model_entry_program(const sinter_model* model, uint32_t entry, uint32_t profile) {
  return has_entry(model, entry) && profile < sinter_model_profile_count(model)
             ? model->model.entry_program(entry, profile)
             : 0;
}
uint32_t sinter_model_step_count(const sinter_model* model, uint32_t program) {
  return program < sinter_model_program_count(model) ? model->model.step_count(program) : 0;
}
const char* sinter_model_step_op(const sinter_model* model, uint32_t program, uint32_t step) {
  return step < sinter_model_step_count(model, program) ? model->model.step_op(step, program) : nullptr;
}
const char* sinter_model_step_name(const sinter_model* model, uint32_t program, uint32_t step) {
  return step < sinter_model_step_count(model, program) ? model->model.step_name(step, program) : nullptr;
}

}  // extern "C"
