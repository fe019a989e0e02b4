// A model opened and a session created, for tests of what sessions do.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "sinter/sinter.h"
#include "tests/format/model_builder.h"

namespace sinter::testing {

// File, model, memory and session of one test.
struct Running {
  AlignedBytes file, model_memory, memory;
  Model model;
  Requirements needs;
  Session session;
  Status status;

  explicit Running(ModelBuilder& builder, const SessionOptions& options = {}) : file(builder.build()) {
    const OpenOptions open{.kernels = reference_kernels()};
    const auto bytes = Model::open_bytes(file.span(), open);
    if (status = bytes.status(); !status.ok()) return;
    model_memory = AlignedBytes(bytes.value());
    const auto opened = Model::open(file.span(), model_memory.span(), open);
    if (status = opened.status(); !status.ok()) return;
    model = opened.value();
    const auto needed = Session::requirements(model, options);
    if (status = needed.status(); !status.ok()) return;
    needs = needed.value();
    memory = AlignedBytes(needs.bytes);
    auto created = Session::create(model, memory.span(), options);
    status = created.status();
    if (created.ok()) session = std::move(created.value());
  }
  ~Running() { session.destroy(); }

  template <class T>
  void set(const char* name, const std::vector<T>& data) {
    const TensorView view = session.input(name);
    ASSERT_EQ(static_cast<size_t>(view.dense_bytes()), data.size() * sizeof(T));
    std::memcpy(view.data, data.data(), data.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> get(const char* name) {
    const TensorView view = session.output(name);
    return {view.as<T>(), view.as<T>() + view.size()};
  }
  std::string why() const {
    char text[256];
    format_status(status, text);
    return text;
  }
};

#define ASSERT_RUNNING(r) ASSERT_TRUE((r).status.ok()) << (r).why()

inline ClampAttrs relu() {
  ClampAttrs a;
  a.min = 0;
  return a;
}

// y = relu(x + c)
inline ModelBuilder add_relu() {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 3});
  const int c = b.constant<float>(DType::kFloat32, {3}, {1, 2, 3});
  const int h = b.value(DType::kFloat32, {2, 3}), y = b.value(DType::kFloat32, {2, 3});
  b.step(AddAttrs{}, {x, c}, {h});
  b.step(relu(), {h}, {y});
  b.output("y", y);
  return b;
}

}  // namespace sinter::testing
