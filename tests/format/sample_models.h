// Models that use much of what a file can hold.
#pragma once

#include "tests/format/model_builder.h"

namespace sinter::testing {

// Elided steps, strides, an in-place step, state, a prepare list, a Convolution, a workspace.
inline ModelBuilder plain_model() {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 4, 4, 2});
  const int w = b.constant<float>(DType::kFloat32, {3, 1, 1, 2}, {1, 2, 3, 4, 5, 6});
  const int p = b.value(DType::kFloat32, {3, 1, 1, 2}, fb::ValueKind::Prepared);
  b.prepare(AbsAttrs{}, {w}, {p});
  const int32_t start = b.add_constant<float>(DType::kFloat32, {3}, {1, 2, 3});
  const int s = b.state(DType::kFloat32, {3}, start, 5);
  const int c = b.value(DType::kFloat32, {1, 4, 4, 3}), t = b.value(DType::kFloat32, {3});
  const int r = b.value(DType::kFloat32, {1, 4, 4, 3}), v = b.value(DType::kFloat32, {16, 3});
  const int cut = b.value(DType::kFloat32, {5, 3}), y = b.value(DType::kFloat32, {5, 3});
  ConvAttrs conv;
  conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {0, 0, 0, 0};
  b.step(conv, {x, p}, {c}).workspace = 65536;
  b.step(AddAttrs{}, {s, s}, {t});
  b.step(ClampAttrs{.min = 0, .max = 6}, {c}, {r});
  b.place(r).alias_of = c;
  b.place(c).last = 2;
  ViewAttrs view;
  view.dims = {16, 3};
  b.step(view, {r}, {v}).elided = true;
  b.place(v).alias_of = r;
  SliceAttrs slice;
  slice.starts = {1, 0}, slice.steps = {3, 1}, slice.sizes = {5, 3};
  b.step(slice, {v}, {cut}).elided = true;
  b.place(cut).alias_of = v, b.place(cut).alias_offset = 12, b.place(cut).strides = {36, 4};
  b.step(AddAttrs{}, {cut, t}, {y});
  b.output("y", y);
  return b;
}

// A Loop whose body has an If.
inline ModelBuilder control_model() {
  ModelBuilder b;
  const int n = b.input("n", DType::kInt64, {}), x = b.input("x", DType::kFloat32, {2});
  const int sum = b.value(DType::kFloat32, {2}), sums = b.value(DType::kFloat32, {3, 2});
  const int trips = b.value(DType::kInt64, {});
  LoopAttrs loop;
  loop.max_trips = 3, loop.carried = 1;
  b.step(loop, {n, -1, x, x}, {sum, sums, trips}, {1});
  b.output("sum", sum);
  b.output("sums", sums);
  b.output("trips", trips);
  b.enter(1);
  b.input("", DType::kInt64, {});
  const int go = b.input("", DType::kBool, {}), s = b.input("", DType::kFloat32, {2});
  const int cx = b.captured(DType::kFloat32, {2}), r = b.value(DType::kFloat32, {2});
  const int copy = b.value(DType::kBool, {});
  b.step(CopyAttrs{}, {go}, {copy});
  b.step(IfAttrs{}, {go, s, cx}, {r}, {2, 3});
  b.output("", copy);
  b.output("", r);
  b.output("", r);
  for (const int branch : {2, 3}) {
    b.enter(static_cast<size_t>(branch));
    const int p = b.captured(DType::kFloat32, {2}), q = b.captured(DType::kFloat32, {2});
    const int sum2 = b.value(DType::kFloat32, {2});
    if (branch == 2)
      b.step(AddAttrs{}, {p, q}, {sum2});
    else
      b.step(MulAttrs{}, {p, q}, {sum2});
    b.output("", sum2);
  }
  b.enter(0);
  return b;
}

// Convolutions and products with constant weights, which backends pack.
inline ModelBuilder weighted_model() {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 8, 8, 4});
  std::vector<float> filter(8 * 3 * 3 * 4), matrix(512 * 10);
  for (size_t i = 0; i < filter.size(); ++i) filter[i] = static_cast<float>(i % 13) / 13 - 0.4f;
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 17) / 17 - 0.5f;
  const int f = b.constant<float>(DType::kFloat32, {8, 3, 3, 4}, filter);
  const int m = b.constant<float>(DType::kFloat32, {10, 512}, matrix);
  const int c = b.value(DType::kFloat32, {1, 8, 8, 8}), v = b.value(DType::kFloat32, {1, 512});
  const int p = b.value(DType::kFloat32, {1, 10}), y = b.value(DType::kFloat32, {1, 10});
  ConvAttrs conv;
  conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {1, 1, 1, 1};
  b.step(conv, {x, f}, {c}).workspace = 1 << 16;
  ViewAttrs view;
  view.dims = {1, 512};
  b.step(view, {c}, {v});
  b.step(FullyConnectedAttrs{}, {v, m}, {p}).workspace = 1 << 16;
  b.step(SigmoidAttrs{}, {p}, {y});
  b.output("y", y);
  return b;
}

// y = x + z and its length in every column, m: x and z are [2, 1..4] of one length, w [1..3, 0..2] of two.
inline ModelBuilder lengths_model() {
  ModelBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 4}), z = b.input("z", DType::kFloat32, {2, 4});
  const int w = b.input("w", DType::kFloat32, {3, 2});
  const int n = b.length("seq", 1, 4), rows = b.length("rows", 1, 3), columns = b.length("columns", 0, 2);
  const int y = b.value(DType::kFloat32, {2, 4}), v = b.value(DType::kFloat32, {3, 2});
  const int part = b.value(DType::kInt64, {1}), m = b.value(DType::kInt64, {4});
  b.step(AddAttrs{}, {x, z}, {y});
  b.step(NegAttrs{}, {w}, {v});
  ViewAttrs view;
  view.dims = {1};
  b.step(view, {n}, {part}).elided = true;
  b.place(part).alias_of = n;
  BroadcastAttrs wide;
  wide.dims = {4};
  b.step(wide, {part}, {m});
  for (const int value : {x, z, y}) b.bound(value, 1, n);
  for (const int value : {w, v}) b.bound(value, 0, rows), b.bound(value, 1, columns);
  b.output("y", y);
  b.output("v", v);
  b.output("m", m);
  return b;
}

// y = -|x + x|, where |.| is computed in the memory of a backend called "far".
inline ModelBuilder memories_model() {
  ModelBuilder b;
  b.backends = {"far"};
  b.regions = {0, 1};
  const int x = b.input("x", DType::kFloat32, {2, 3}), h = b.value(DType::kFloat32, {2, 3});
  const int up = b.value(DType::kFloat32, {2, 3}), f = b.value(DType::kFloat32, {2, 3});
  const int down = b.value(DType::kFloat32, {2, 3}), y = b.value(DType::kFloat32, {2, 3});
  for (const int v : {up, f}) b.place(v).region = 1;
  b.step(AddAttrs{}, {x, x}, {h});
  b.step(CopyAttrs{}, {h}, {up}).candidates = {0};
  b.step(AbsAttrs{}, {up}, {f}).candidates = {0};
  b.step(CopyAttrs{}, {f}, {down}).candidates = {0};
  b.step(NegAttrs{}, {down}, {y});
  b.output("y", y);
  return b;
}

// n trips, three at most, of p = |p + x| in the memory of a backend called "far"; p starts as x. y is the
// last p, all has those of all trips.
inline ModelBuilder bodies_model() {
  ModelBuilder b;
  b.backends = {"far"};
  b.regions = {0, 1};
  const auto far = [&b](std::vector<int64_t> dims) {
    const int v = b.value(DType::kFloat32, std::move(dims));
    b.place(v).region = 1;
    return v;
  };
  const int x = b.input("x", DType::kFloat32, {4}), n = b.input("n", DType::kInt64, {});
  const int there = far({4}), last = far({4}), list = far({3, 4});
  const int y = b.value(DType::kFloat32, {4}), all = b.value(DType::kFloat32, {3, 4});
  b.step(CopyAttrs{}, {x}, {there}).candidates = {0};
  b.step(LoopAttrs{3, 1}, {n, -1, there, there}, {last, list, -1}, {1});
  b.step(CopyAttrs{}, {last}, {y}).candidates = {0};
  b.step(CopyAttrs{}, {list}, {all}).candidates = {0};
  b.output("y", y), b.output("all", all);
  b.enter(1);
  b.program().memories = {0, 1};
  b.input("", DType::kInt64, {}), b.input("", DType::kBool, {});
  const int p = b.input("", DType::kFloat32, {4});
  b.place(p).region = 1;
  const int added = b.captured(DType::kFloat32, {4});
  const int sum = far({4}), next = far({4});
  const int yes = b.constant<uint8_t>(DType::kBool, {}, {1});
  b.step(AddAttrs{}, {p, added}, {sum}).candidates = {0};
  b.step(AbsAttrs{}, {sum}, {next}).candidates = {0};
  b.output("", yes), b.output("", next), b.output("", next);
  b.enter(0);
  return b;
}

// y = choice ? x + c : x * c, in two profiles that compute it by programs of their own: an If, and a Where.
// The second one is planned for this machine, the first one for no machine that there is.
inline ModelBuilder profiles_model() {
  ModelBuilder b;
  const std::vector<float> four = {1, 2, 3, 4};
  const auto ports = [&b](int* choice, int* x, int* y) {
    *choice = b.input("choice", DType::kBool, {}), *x = b.input("x", DType::kFloat32, {4});
    *y = b.value(DType::kFloat32, {4});
    b.output("y", *y);
  };
  int choice = 0, x = 0, y = 0;
  ports(&choice, &x, &y);
  b.step(IfAttrs{}, {choice, x}, {y}, {1, 2});
  for (const uint32_t branch : {1u, 2u}) {
    b.enter(branch);
    const int taken = b.captured(DType::kFloat32, {4}), out = b.value(DType::kFloat32, {4});
    const int c = b.constant<float>(DType::kFloat32, {4}, four);
    if (branch == 1)
      b.step(AddAttrs{}, {taken, c}, {out});
    else
      b.step(MulAttrs{}, {taken, c}, {out});
    b.output("", out);
  }
  b.enter(3);
  ports(&choice, &x, &y);
  const int sum = b.value(DType::kFloat32, {4}), product = b.value(DType::kFloat32, {4});
  const int c = b.constant<float>(DType::kFloat32, {4}, four);
  b.step(AddAttrs{}, {x, c}, {sum});
  b.step(MulAttrs{}, {x, c}, {product});
  b.step(WhereAttrs{}, {choice, sum, product}, {y});
  b.enter(0);
  b.profiles = {{"branches", "elsewhere", static_cast<Architecture>(200), {0}, {}},
                {"selects", "here", kHostArchitecture, {3}, {}}};
  return b;
}

// The same for any machine.
inline ModelBuilder portable_profiles_model() {
  ModelBuilder b = profiles_model();
  b.profiles[1].architecture = Architecture::kPortable;
  return b;
}

// y = |x| for 4 numbers (entry 0), and for 4096 (entry 1).
inline ModelBuilder shapes_model() {
  ModelBuilder b;
  for (const size_t entry : {0u, 1u}) {
    b.enter(entry);
    const std::vector<int64_t> dims = {entry == 0 ? 4 : 4096};
    const int x = b.input("x", DType::kFloat32, dims), y = b.value(DType::kFloat32, dims);
    b.step(AbsAttrs{}, {x}, {y});
    b.output("y", y);
  }
  b.enter(0);
  b.profiles[0].entries = {0, 1};
  return b;
}

}  // namespace sinter::testing
