// The inputs, outputs and states of sessions for C.
#include "application/c/handles.h"

namespace sinter::c {
namespace {

enum class Port { kInput, kOutput };

Status port_at(const sinter_session& session, Port port, uint32_t index, sinter_tensor* tensor) {
  const Session& of = session.session();
  const bool in = port == Port::kInput;
  const uint32_t count = in ? of.input_count() : of.output_count();
  SINTER_RETURN_UNLESS(index < count, invalid(in ? "the model has %a inputs, not number %b"
                                                 : "the model has %a outputs, not number %b",
                                              count, index));
  describe(in ? of.model().input(index, session.entry()) : of.model().output(index, session.entry()),
           (in ? of.input(index) : of.output(index)).data, tensor);
  return ok_status();
}

Status find_port(const sinter_session& session, Port port, const char* name, uint32_t* index) {
  const Model& model = session.model;
  const bool in = port == Port::kInput;
  const int i = in ? model.find_input(name, session.entry()) : model.find_output(name, session.entry());
  SINTER_RETURN_UNLESS(
      i >= 0, invalid(in ? "the model does not have an input '%s'" : "the model does not have an output '%s'",
                      name_of(name)));
  *index = static_cast<uint32_t>(i);
  return ok_status();
}
Status find_port(const sinter_session& session, Port port, const char* name, sinter_tensor* tensor) {
  uint32_t i = 0;
  SINTER_RETURN_IF_ERROR(find_port(session, port, name, &i));
  return port_at(session, port, i, tensor);
}

// An input or output and the type of its values.
struct TypedPort {
  uint32_t index = 0;
  sinter_tensor tensor;

  Status find(const sinter_session& session, Port port, const char* name, sinter_type type) {
    where_ = port == Port::kInput ? Where::kInput : Where::kOutput;
    SINTER_RETURN_IF_ERROR(find_port(session, port, name, &index));
    SINTER_RETURN_IF_ERROR(port_at(session, port, index, &tensor));
    SINTER_RETURN_UNLESS(tensor.type == static_cast<int32_t>(type),
                         at(invalid("its type is %A but the values are %B", tensor.type, type)));
    return ok_status();
  }
  // Returns an error unless `bytes` bytes are all of it.
  Status check_whole(size_t bytes) const {
    SINTER_RETURN_UNLESS(tensor.bytes == bytes,
                         at(invalid("it has %a bytes but the values have %b",
                                    static_cast<int64_t>(tensor.bytes), static_cast<int64_t>(bytes))));
    return ok_status();
  }

 private:
  Status at(const Status& status) const { return status.at(where_, static_cast<int32_t>(index)); }

  Where where_ = Where::kNone;
};

std::span<const int64_t> shape_of(const int64_t* dims, int32_t rank) {
  return {dims, static_cast<size_t>(rank)};
}
std::span<const std::byte> bytes_of(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

// The caller writes the input in place from now on.
void give_address(const sinter_session& session, int input) {
  session.marks.give_address(session.entry(), static_cast<uint32_t>(input));
}

Status find_state(const sinter_session& session, const char* name, sinter_tensor* tensor) {
  const Model& model = session.model;
  uint32_t i = 0;
  const uint32_t count = model.state_count(session.entry());
  while (i < count && std::strcmp(model.state(i, session.entry()).input, name) != 0) ++i;
  SINTER_RETURN_UNLESS(i < count, invalid("the model does not have a state '%s'", name_of(name)));
  const TensorView view = session.session().state(i);
  SINTER_RETURN_UNLESS(view.present(), unsupported("the state '%s' is in device memory", name_of(name)));
  describe(model.state(i, session.entry()), view.data, tensor);
  return ok_status();
}

}  // namespace
}  // namespace sinter::c

using namespace sinter::c;

extern "C" {

sinter_code sinter_session_input(const sinter_session* session, const char* name, sinter_tensor* input,
                                 sinter_error* error) {
  if (session == nullptr || name == nullptr || input == nullptr) return result(kNull, error);
  const sinter::Status status = find_port(*session, Port::kInput, name, input);
  if (status.ok()) give_address(*session, session->model.find_input(name, session->entry()));
  return result(status, error);
}
sinter_code sinter_session_output(const sinter_session* session, const char* name, sinter_tensor* output,
                                  sinter_error* error) {
  if (session == nullptr || name == nullptr || output == nullptr) return result(kNull, error);
  return result(find_port(*session, Port::kOutput, name, output), error);
}
sinter_code sinter_session_input_at(const sinter_session* session, uint32_t index, sinter_tensor* input,
                                    sinter_error* error) {
  if (session == nullptr || input == nullptr) return result(kNull, error);
  const sinter::Status status = port_at(*session, Port::kInput, index, input);
  if (status.ok()) give_address(*session, static_cast<int>(index));
  return result(status, error);
}
sinter_code sinter_session_output_at(const sinter_session* session, uint32_t index, sinter_tensor* output,
                                     sinter_error* error) {
  if (session == nullptr || output == nullptr) return result(kNull, error);
  return result(port_at(*session, Port::kOutput, index, output), error);
}
int64_t sinter_session_output_length(const sinter_session* session, const char* name, int32_t axis) {
  if (session == nullptr || name == nullptr) return 0;
  const int i = session->model.find_output(name, session->entry());
  return i >= 0 ? session->session().output_length(static_cast<uint32_t>(i), axis) : 0;
}
int64_t sinter_session_output_length_at(const sinter_session* session, uint32_t index, int32_t axis) {
  if (session == nullptr || index >= session->session().output_count()) return 0;
  return session->session().output_length(index, axis);
}

sinter_code sinter_set(sinter_session* session, const char* name, sinter_type type, const void* data,
                       size_t bytes, sinter_error* error) {
  if (session == nullptr || name == nullptr || (data == nullptr && bytes > 0)) return result(kNull, error);
  TypedPort port;
  sinter::Status status = port.find(*session, Port::kInput, name, type);
  if (status.ok()) status = port.check_whole(bytes);
  if (status.ok())
    status = session->session().write_input(port.index, bytes_of(data, bytes),
                                            shape_of(port.tensor.dims, port.tensor.rank));
  if (status.ok()) session->marks.set(session->entry(), port.index);
  return result(status, error, session->model);
}
sinter_code sinter_set_shaped(sinter_session* session, const char* name, sinter_type type, const void* data,
                              size_t bytes, const int64_t* dims, int32_t rank, sinter_error* error) {
  if (session == nullptr || name == nullptr || (data == nullptr && bytes > 0) ||
      (dims == nullptr && rank > 0) || rank < 0)
    return result(kNull, error);
  TypedPort port;
  sinter::Status status = port.find(*session, Port::kInput, name, type);
  if (status.ok())
    status = session->session().write_input(port.index, bytes_of(data, bytes), shape_of(dims, rank));
  if (status.ok()) session->marks.set(session->entry(), port.index);
  return result(status, error, session->model);
}
sinter_code sinter_session_set_shape(sinter_session* session, const char* name, const int64_t* dims,
                                     int32_t rank, sinter_error* error) {
  if (session == nullptr || name == nullptr || (dims == nullptr && rank > 0) || rank < 0)
    return result(kNull, error);
  uint32_t input = 0;
  sinter::Status status = find_port(*session, Port::kInput, name, &input);
  if (status.ok()) status = session->session().set_shape(input, shape_of(dims, rank));
  return result(status, error, session->model);
}
int64_t sinter_session_input_length(const sinter_session* session, const char* name, int32_t axis) {
  if (session == nullptr || name == nullptr) return 0;
  const int i = session->model.find_input(name, session->entry());
  return i >= 0 ? session->session().input_length(static_cast<uint32_t>(i), axis) : 0;
}
sinter_code sinter_get_used(const sinter_session* session, const char* name, sinter_type type, void* data,
                            size_t bytes, sinter_error* error) {
  if (session == nullptr || name == nullptr || (data == nullptr && bytes > 0)) return result(kNull, error);
  TypedPort port;
  sinter::Status status = port.find(*session, Port::kOutput, name, type);
  if (status.ok())
    status = session->session().read_output(port.index, {static_cast<std::byte*>(data), bytes});
  return result(status, error, session->model);
}
sinter_code sinter_get(const sinter_session* session, const char* name, sinter_type type, void* data,
                       size_t bytes, sinter_error* error) {
  if (session == nullptr || name == nullptr || (data == nullptr && bytes > 0)) return result(kNull, error);
  TypedPort port;
  sinter::Status status = port.find(*session, Port::kOutput, name, type);
  if (status.ok()) status = port.check_whole(bytes);
  if (status.ok() && bytes > 0) std::memcpy(data, port.tensor.data, bytes);
  return result(status, error, session->model);
}
sinter_code sinter_session_state(const sinter_session* session, const char* name, sinter_tensor* state,
                                 sinter_error* error) {
  if (session == nullptr || name == nullptr || state == nullptr) return result(kNull, error);
  return result(find_state(*session, name, state), error);
}

}  // extern "C"
