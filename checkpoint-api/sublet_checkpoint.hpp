// The checkpoint API for C++: a thin layer over sublet_checkpoint.h, header only.
//
//   std::vector<double> weights(100);
//   std::uint64_t step = 0;
//   sublet::Checkpoint checkpoint("my-program", 1);
//   checkpoint.variable("weights", weights);
//   checkpoint.variable("step", step);
//   checkpoint.start();
//   for (; step < 1000000; ++step) { checkpoint.progress(step, 1000000); checkpoint.point(); ... }
//   checkpoint.finish();
//
// Errors of the C functions are thrown as std::system_error, a refused start as
// sublet::CheckpointRefused. Variables must stay at their addresses (a vector must keep its
// size) until the Checkpoint is destroyed. One thread at a time.
#ifndef SUBLET_CHECKPOINT_API_SUBLET_CHECKPOINT_HPP_
#define SUBLET_CHECKPOINT_API_SUBLET_CHECKPOINT_HPP_

#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <list>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "sublet_checkpoint.h"

namespace sublet {

class CheckpointRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The type number of T. bool is not allowed: only two of its 256 values may be restored.
template <class T>
constexpr sublet_checkpoint_type checkpoint_type() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8,
                "a checkpoint holds integers of 1, 2, 4 or 8 bytes, float and double");
  constexpr int log2_size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? SUBLET_FLOAT32 : SUBLET_FLOAT64;
  } else {
    const int first = std::is_signed_v<T> ? SUBLET_INT8 : SUBLET_UINT8;
    return static_cast<sublet_checkpoint_type>(first + 2 * log2_size);
  }
}

// A section being written or read; valid only during the callback.
class CheckpointStream {
 public:
  explicit CheckpointStream(sublet_checkpoint_stream* stream) : stream_(stream) {}

  template <class T>
  void write(const T* elements, std::size_t count) {
    check(sublet_checkpoint_write(stream_, elements, count, checkpoint_type<T>()));
  }
  template <class T>
  void write(const T& value) {
    write(&value, 1);
  }
  template <class T>
  void read(T* elements, std::size_t count) {
    check(sublet_checkpoint_read(stream_, elements, count, checkpoint_type<T>()));
  }
  template <class T>
  T read() {
    T value{};
    read(&value, 1);
    return value;
  }
  // Bytes not yet read: an upper bound for every length found in the stream.
  std::uint64_t remaining() const { return sublet_checkpoint_remaining(stream_); }

 private:
  static void check(int error) {
    if (error != 0) throw std::system_error(error, std::generic_category(), "checkpoint section");
  }
  sublet_checkpoint_stream* stream_;
};

class Checkpoint {
 public:
  using Callback = std::function<void(CheckpointStream&)>;

  Checkpoint(const std::string& program, std::uint32_t layout)
      : handle_(sublet_checkpoint_open(program.c_str(), layout)) {
    if (handle_ == nullptr) check(errno);
  }
  ~Checkpoint() { sublet_checkpoint_close(handle_); }
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  template <class T>
  void variable(const char* name, T* elements, std::size_t count) {
    check(sublet_checkpoint_variable(handle_, name, elements, count, checkpoint_type<T>()));
  }
  template <class T>
  void variable(const char* name, T& value) {
    variable(name, &value, 1);
  }
  template <class T>
  void variable(const char* name, std::vector<T>& values) {
    variable(name, values.data(), values.size());
  }
  template <class T, std::size_t N>
  void variable(const char* name, std::array<T, N>& values) {
    variable(name, values.data(), N);
  }

  // An exception from `save` makes the save fail; one from `restore`, the start.
  void callbacks(const char* name, Callback save, Callback restore) {
    sections_.push_back({std::move(save), std::move(restore)});
    check(sublet_checkpoint_callbacks(handle_, name, &call_save, &call_restore, &sections_.back()));
  }

  // True if resumed.
  bool start(const sublet_checkpoint_options& options = {}) {
    const int result = sublet_checkpoint_start(handle_, &options);
    if (result == SUBLET_REFUSED) throw CheckpointRefused(sublet_checkpoint_message(handle_));
    return result == SUBLET_RESUMED;
  }
  // False: leave now (only with leave_by_returning).
  bool point() { return sublet_checkpoint_point(handle_) == SUBLET_GO_ON; }
  // Whether the next point would save or leave.
  bool wanted() const { return sublet_checkpoint_wanted(handle_) != 0; }
  // Readable while wanted(); to be waited for only.
  int descriptor() {
    const int fd = sublet_checkpoint_descriptor(handle_);
    if (fd < 0) check(errno);
    return fd;
  }
  void save() { check(sublet_checkpoint_save(handle_)); }
  void progress(std::uint64_t done, std::uint64_t total) {
    sublet_checkpoint_progress(handle_, done, total);
  }
  void finish() { sublet_checkpoint_finish(handle_); }
  std::uint64_t generation() const { return sublet_checkpoint_generation(handle_); }

 private:
  struct Section {
    Callback save, restore;
  };

  // Exceptions must not propagate through C code.
  static int call(const Callback& callback, sublet_checkpoint_stream* stream) {
    try {
      CheckpointStream section(stream);
      callback(section);
      return 0;
    } catch (...) {
      return -1;
    }
  }
  static int call_save(sublet_checkpoint_stream* stream, void* section) {
    return call(static_cast<Section*>(section)->save, stream);
  }
  static int call_restore(sublet_checkpoint_stream* stream, void* section) {
    return call(static_cast<Section*>(section)->restore, stream);
  }
  static void check(int error) {
    if (error != 0) throw std::system_error(error, std::generic_category(), "checkpoint");
  }

  sublet_checkpoint* handle_;
  std::list<Section> sections_;  // the C library keeps pointers to its elements
};

}  // namespace sublet

#endif  // SUBLET_CHECKPOINT_API_SUBLET_CHECKPOINT_HPP_
