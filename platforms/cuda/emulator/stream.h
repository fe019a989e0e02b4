// Streams of the stand-in: their jobs are done when the host waits for them.
#pragma once

#include <cstddef>
#include <vector>

#include "platforms/cuda/driver/api.h"
#include "platforms/cuda/emulator/kernels.h"
#include "platforms/cuda/emulator/run.h"
#include "platforms/cuda/emulator/stand_in.h"

namespace sinter::cuda {

// Results of the driver that only the stand-in returns.
inline constexpr DriverResult kInvalidValue = 1, kInvalidContext = 201, kNotFound = 500,
                              kIllegalAddress = 700, kLaunchFailed = 719, kStreamCaptureInvalid = 901;
inline constexpr size_t kMostArguments = 4096;

// A job of a stream.
struct Job {
  enum class Kind : uint8_t { kUpload, kDownload, kCopy, kFill, kLaunch, kGraph, kWait };
  Kind kind = Kind::kFill;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t bytes = 0;
  unsigned char fill = 0;
  const emulator::HostKernel* kernel = nullptr;
  emulator::Grid grid;
  const std::vector<Job>* graph = nullptr;
  StreamHandle other = nullptr;  // kWait: until `other_jobs` of its jobs are done
  size_t other_jobs = 0;
  alignas(16) std::byte arguments[kMostArguments];
};

// Does all jobs of a stream.
DriverResult finish(StreamHandle stream);
// Returns the place of the next job; if the list is full, earlier jobs are done first.
DriverResult next_job(StreamHandle stream, Job** job);

void count(int64_t StandInCounts::*what, int64_t by = 1);

}  // namespace sinter::cuda

struct CUgraph_st {
  std::vector<sinter::cuda::Job> jobs;
};
struct CUgraphExec_st {
  std::vector<sinter::cuda::Job> jobs;
};
struct CUstream_st {
  // The jobs of a run that the list holds; a run beyond it waits for those that were started.
  static constexpr size_t kRoom = 256;
  sinter::cuda::Job* jobs = nullptr;
  size_t begin = 0, end = 0;  // the jobs that are to be done
  size_t done = 0;            // jobs since the stream was created
  CUgraph_st* captured = nullptr;
};
struct CUevent_st {
  CUstream_st* stream = nullptr;  // the stream in which it was recorded last
  size_t jobs = 0;                // the number of its jobs before
};
