// Times of what runs on a device are made of, from the host's first call to the end of waiting: medians and
// minima in microseconds, as rows of a table in Markdown. on_device.sh runs it.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

__global__ void add_one(float* p) {
  if (threadIdx.x == 0) p[blockIdx.x] += 1.0f;
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "device_times: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

template <class F>
void time_of(const char* what, F f) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) f();
  for (int i = 0; i < 200; ++i) {
    const auto start = Clock::now();
    f();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("| %s | %.2f | %.2f |\n", what, times[times.size() / 2], times[0]);
}

}  // namespace

int main() {
  constexpr size_t kMost = 16 << 20;
  float *on_device = nullptr, *other = nullptr;
  char* on_host = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaMalloc(&on_device, kMost));
  check(cudaMalloc(&other, kMost));
  check(cudaMallocHost(&on_host, kMost));
  check(cudaMemset(on_device, 0, kMost));
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto wait = [&] { check(cudaStreamSynchronize(stream)); };

  std::printf("| | median, us | minimum, us |\n| --- | --- | --- |\n");
  time_of("a kernel", [&] { add_one<<<1, 32, 0, stream>>>(on_device), wait(); });
  time_of("10 kernels, launched one by one", [&] {
    for (int i = 0; i < 10; ++i) add_one<<<1, 32, 0, stream>>>(on_device);
    wait();
  });
  for (const int count : {1, 10, 100}) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < count; ++i) add_one<<<1, 32, 0, stream>>>(on_device);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&ready, graph, 0));
    char name[40];
    std::snprintf(name, sizeof(name), "a graph of %d kernels", count);
    time_of(name, [&] { check(cudaGraphLaunch(ready, stream)), wait(); });
  }
  for (const size_t bytes : {size_t{1} << 10, size_t{1} << 20, kMost}) {
    char name[40];
    std::snprintf(name, sizeof(name), "%zu KiB to the device", bytes >> 10);
    time_of(name, [&] {
      check(cudaMemcpyAsync(on_device, on_host, bytes, cudaMemcpyHostToDevice, stream)), wait();
    });
    std::snprintf(name, sizeof(name), "%zu KiB from the device", bytes >> 10);
    time_of(name, [&] {
      check(cudaMemcpyAsync(on_host, on_device, bytes, cudaMemcpyDeviceToHost, stream)), wait();
    });
    std::snprintf(name, sizeof(name), "%zu KiB within the device", bytes >> 10);
    time_of(name, [&] {
      check(cudaMemcpyAsync(other, on_device, bytes, cudaMemcpyDeviceToDevice, stream)), wait();
    });
  }
  check(cudaGetLastError());
  return 0;
}
