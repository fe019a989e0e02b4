#include "platforms/cuda/emulator/stream.h"

#include <cstdio>
#include <cstring>
#include <mutex>

#include "platforms/cuda/emulator/device_memory.h"

namespace sinter::cuda {
namespace {

constinit std::mutex counting;
constinit StandInCounts counts;

DriverResult launch(const Job& job) {
  const char* breach = emulator::run_grid(job.grid, job.kernel->run, job.arguments);
  if (breach == nullptr) return kDriverSuccess;
  std::fprintf(stderr, "kernel %s: %s\n", job.kernel->name, breach);
  return kLaunchFailed;
}

DriverResult download(const Job& job) {
  if (!emulator::is_written(job.from, job.bytes)) {
    std::fprintf(stderr, "a download of %zu bytes: some were never written\n", job.bytes);
    return kLaunchFailed;
  }
  std::memcpy(job.to, job.from, job.bytes);
  return kDriverSuccess;
}

DriverResult do_jobs(StreamHandle stream, size_t count);

DriverResult do_job(const Job& job) {
  switch (job.kind) {
    case Job::Kind::kUpload:
      count(&StandInCounts::uploads);
      emulator::note_written(job.to, job.bytes);
      std::memcpy(job.to, job.from, job.bytes);
      return kDriverSuccess;
    case Job::Kind::kDownload:
      count(&StandInCounts::downloads);
      return download(job);
    case Job::Kind::kCopy:
      emulator::note_copied(job.to, job.from, job.bytes);
      std::memcpy(job.to, job.from, job.bytes);
      return kDriverSuccess;
    case Job::Kind::kFill:
      emulator::note_written(job.to, job.bytes);
      std::memset(job.to, job.fill, job.bytes);
      return kDriverSuccess;
    case Job::Kind::kLaunch:
      count(&StandInCounts::launches);
      return launch(job);
    case Job::Kind::kGraph:
      for (const Job& inner : *job.graph)
        if (const DriverResult done = do_job(inner); done != kDriverSuccess) return done;
      return kDriverSuccess;
    case Job::Kind::kWait:
      return job.other->done >= job.other_jobs ? kDriverSuccess
                                               : do_jobs(job.other, job.other_jobs - job.other->done);
  }
  return kInvalidValue;
}

// Does the first jobs of a stream. One of them may wait for jobs of another stream, which wait for earlier
// ones here.
DriverResult do_jobs(StreamHandle stream, size_t count) {
  DriverResult first = kDriverSuccess;
  for (size_t i = 0; i < count; ++i) {
    const Job& job = stream->jobs[stream->begin++];
    if (first == kDriverSuccess) first = do_job(job);
    ++stream->done;
  }
  if (stream->begin == stream->end) stream->begin = stream->end = 0;
  return first;
}

}  // namespace

DriverResult finish(StreamHandle stream) {
  if (stream->begin == stream->end) return kDriverSuccess;
  emulator::open_device_memory(true);
  const DriverResult first = do_jobs(stream, stream->end - stream->begin);
  emulator::open_device_memory(false);
  return first;
}

DriverResult next_job(StreamHandle stream, Job** job) {
  if (stream->captured != nullptr) {
    *job = &stream->captured->jobs.emplace_back();
    return kDriverSuccess;
  }
  if (stream->end == CUstream_st::kRoom)
    if (const DriverResult done = finish(stream); done != kDriverSuccess) return done;
  *job = new (stream->jobs + stream->end++) Job;
  return kDriverSuccess;
}

void count(int64_t StandInCounts::*what, int64_t by) {
  const std::lock_guard<std::mutex> lock(counting);
  counts.*what += by;
}

const StandInCounts& stand_in_counts() { return counts; }

}  // namespace sinter::cuda
