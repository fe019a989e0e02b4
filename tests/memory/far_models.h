// Models with some steps in the memory of a device (far_backend.h), placed manually.
#pragma once

#include <memory>

#include "tests/format/model_builder.h"
#include "tests/memory/far_backend.h"
#include "tests/unit/running.h"

namespace sinter::testing {

using test::FarBackend;
using test::Work;

// Values and steps of device d are in region d + 1, the memory of backend d.
class FarModel : public ModelBuilder {
 public:
  explicit FarModel(std::vector<std::string> names = {"far"}) {
    backends = std::move(names);
    for (size_t d = 0; d < backends.size(); ++d) regions.push_back(static_cast<uint8_t>(d + 1));
  }
  int far_value(DType dtype, std::vector<int64_t> dims, uint32_t device = 0) {
    const int v = value(dtype, std::move(dims));
    place(v).region = device + 1;
    return v;
  }
  template <class A>
  StepSpec& far_step(const A& attrs, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
                     uint8_t device = 0) {
    StepSpec& s = step(attrs, std::move(inputs), std::move(outputs));
    s.candidates = {device};
    s.workspace_region = device + 1u;
    return s;
  }
  // Transfers.
  int up(int v, uint32_t device = 0) {
    const int t = far_value(spec(v).dtype, spec(v).dims, device);
    far_step(CopyAttrs{}, {v}, {t}, static_cast<uint8_t>(device));
    return t;
  }
  int down(int v) {
    const int t = value(spec(v).dtype, spec(v).dims);
    far_step(CopyAttrs{}, {v}, {t}, static_cast<uint8_t>(place(v).region - 1));
    return t;
  }
  void down_to(int v, int t) { far_step(CopyAttrs{}, {v}, {t}, static_cast<uint8_t>(place(v).region - 1)); }
  ValueSpec& spec(int v) { return program().values[static_cast<size_t>(v)]; }
};

// x -> host: h = x + c -> far: f = relu(h weights + bias), s = softmax(f) -> host: y = s * 2 + x; and z = f.
inline FarModel mixed_model() {
  FarModel b;
  const int x = b.input("x", DType::kFloat32, {3, 8});
  std::vector<float> c(8), w(64), bias(8);
  for (size_t i = 0; i < 8; ++i)
    c[i] = static_cast<float>(i) / 7 - 0.4f, bias[i] = static_cast<float>(i % 3) - 1;
  for (size_t i = 0; i < 64; ++i) w[i] = static_cast<float>(i * 37 % 64) / 31 - 1;
  const int cv = b.constant<float>(DType::kFloat32, {8}, c);
  const int wv = b.constant<float>(DType::kFloat32, {8, 8}, w);
  const int bv = b.constant<float>(DType::kFloat32, {8}, bias);
  const int two = b.constant<float>(DType::kFloat32, {}, {2.0f});
  const int h = b.value(DType::kFloat32, {3, 8});
  b.step(AddAttrs{}, {x, cv}, {h});
  const int hf = b.up(h);
  const int f = b.far_value(DType::kFloat32, {3, 8}), s = b.far_value(DType::kFloat32, {3, 8});
  FullyConnectedAttrs connected;
  connected.act_min = 0;
  b.far_step(connected, {hf, wv, bv}, {f}).workspace = 8192;
  b.far_step(SoftmaxAttrs{1, 0}, {f}, {s});
  const int sh = b.down(s), z = b.down(f);
  const int d = b.value(DType::kFloat32, {3, 8}), y = b.value(DType::kFloat32, {3, 8});
  b.step(MulAttrs{}, {sh, two}, {d});
  b.step(AddAttrs{}, {d, x}, {y});
  b.output("y", y);
  b.output("z", z);
  return b;
}

inline std::vector<float> numbers(size_t n, int seed = 0) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i)
    v[i] = static_cast<float>((static_cast<int>(i) * 29 + seed * 17) % 41) / 9 - 2;
  return v;
}

// The session of `r` gives what the reference kernels in host memory give for the same file, in these runs.
template <class F>
void expect_same_bits(Running& r, F&& fill, int runs = 3) {
  SessionOptions options{.backend = "reference"};
  const auto needs = Session::requirements(r.model, options);
  ASSERT_TRUE(needs.ok()) << needs.status().message;
  EXPECT_EQ(needs.value().device_count, 0u);
  AlignedBytes memory(needs.value().bytes);
  auto reference = Session::create(r.model, memory.span(), options);
  ASSERT_TRUE(reference.ok()) << reference.status().message;
  for (int run = 0; run < runs; ++run) {
    fill(*reference, run);
    fill(r.session, run);
    ASSERT_TRUE(reference->run().ok());
    const Status status = r.session.run();
    ASSERT_TRUE(status.ok()) << status.message;
    for (uint32_t i = 0; i < r.session.output_count(); ++i) {
      const TensorView a = reference->output(i), b = r.session.output(i);
      EXPECT_EQ(b.memory, 0);
      EXPECT_EQ(std::memcmp(a.data, b.data, static_cast<size_t>(a.dense_bytes())), 0)
          << "output " << i << " of run " << run;
    }
  }
  reference->destroy();
}

inline void fill_x(Session& session, int run) {
  const TensorView x = session.input("x");
  const auto data = numbers(static_cast<size_t>(x.size()), run);
  std::memcpy(x.data, data.data(), data.size() * sizeof(float));
}

inline std::string sentence(const Status& status) {
  char text[300];
  format_status(status, text);
  return text;
}

}  // namespace sinter::testing
