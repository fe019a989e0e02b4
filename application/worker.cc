#include "application/worker.h"

namespace sinter {

#ifdef SINTER_THREADS

Worker::Worker() {
  pthread_mutex_init(&mutex_, nullptr);
  pthread_cond_init(&changed_, nullptr);
}

Status Worker::begin_thread() {
  if (begun_) return ok_status();
  // The thread waits for the mutex, which this one has until thread_ is set.
  begun_ = pthread_create(&thread_, nullptr, work, this) == 0;
  SINTER_RETURN_UNLESS(begun_, unsupported("the system refuses to start a thread for the run; call run()"));
  return ok_status();
}

Status Worker::start(Task task, void* context) {
  pthread_mutex_lock(&mutex_);
  Status status = ready_in_lock();
  if (status.ok()) status = begin_thread();
  if (status.ok()) {
    task_ = task, context_ = context;
    busy_.store(true, std::memory_order_release);
    pthread_cond_broadcast(&changed_);
  }
  pthread_mutex_unlock(&mutex_);
  return status;
}

Status Worker::ready() {
  pthread_mutex_lock(&mutex_);
  const Status status = ready_in_lock();
  pthread_mutex_unlock(&mutex_);
  return status;
}

Status Worker::ready_in_lock() {
  while (busy() && !closing_ && !on_own_thread()) pthread_cond_wait(&changed_, &mutex_);
  SINTER_RETURN_UNLESS(!closing_, invalid("no run can be started while the session is being destroyed"));
  SINTER_RETURN_UNLESS(task_ == nullptr,
                       invalid("the next run has been started already; start one at a time"));
  return ok_status();
}

void Worker::wait_for_idle() const {
  pthread_mutex_lock(&mutex_);
  while (busy() && !on_own_thread()) pthread_cond_wait(&changed_, &mutex_);
  pthread_mutex_unlock(&mutex_);
}

void* Worker::work(void* self) {
  Worker& worker = *static_cast<Worker*>(self);
  pthread_mutex_lock(&worker.mutex_);
  while (true) {
    while (worker.task_ == nullptr && !worker.closing_) pthread_cond_wait(&worker.changed_, &worker.mutex_);
    if (worker.task_ == nullptr) break;
    const Task task = worker.task_;
    void* const context = worker.context_;
    worker.task_ = nullptr;
    pthread_mutex_unlock(&worker.mutex_);
    task(context);
    pthread_mutex_lock(&worker.mutex_);
    if (worker.task_ == nullptr) worker.busy_.store(false, std::memory_order_release);
    pthread_cond_broadcast(&worker.changed_);
  }
  pthread_mutex_unlock(&worker.mutex_);
  return nullptr;
}

void Worker::close() {
  pthread_mutex_lock(&mutex_);
  const bool first = !closing_, begun = begun_;
  closing_ = true;
  pthread_cond_broadcast(&changed_);
  pthread_mutex_unlock(&mutex_);
  if (first && begun) pthread_join(thread_, nullptr);
}

Worker::~Worker() {
  close();
  pthread_cond_destroy(&changed_);
  pthread_mutex_destroy(&mutex_);
}

#else

Worker::Worker() = default;
Worker::~Worker() = default;
Status Worker::ready() {
  return unsupported("this build starts no threads (SINTER_THREADS=OFF); call run()");
}
Status Worker::start(Task, void*) { return ready(); }
void Worker::wait_for_idle() const {}
void Worker::close() {}

#endif

}  // namespace sinter
