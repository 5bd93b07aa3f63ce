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
// What can be saved, as one variable or inside another: integers, floating-point numbers of 4
// and 8 bytes, bool; C arrays, std::array, std::vector and std::string of what can be saved; and
// structs that name their fields, in their own namespace:
//
//   struct Body { std::array<double, 3> place; std::string name; };
//   auto checkpoint_fields(Body& body) { return std::tie(body.place, body.name); }
//
// A struct is written field by field, so that the file does not depend on how a compiler lays
// it out. A vector or string has in the file the size that it has when it is saved, and gets
// that size at start.
//
// Errors of the C functions are thrown as std::system_error, a refused start as
// sublet::CheckpointRefused. Variables must stay at their addresses (a vector's elements may
// move) until the Checkpoint is destroyed. One thread at a time. Needs C++17.
#ifndef SUBLET_CHECKPOINT_API_SUBLET_CHECKPOINT_HPP_
#define SUBLET_CHECKPOINT_API_SUBLET_CHECKPOINT_HPP_

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sublet_checkpoint.h"

namespace sublet {

class CheckpointRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The type number of T. bool is not allowed: only two of its 256 values may be restored. char
// is signed in the file even where it is not in the program.
template <class T>
constexpr sublet_checkpoint_type checkpoint_type() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8,
                "a checkpoint holds integers of 1, 2, 4 or 8 bytes, float and double");
  constexpr int log2_size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? SUBLET_FLOAT32 : SUBLET_FLOAT64;
  } else {
    const int first = std::is_signed_v<T> || std::is_same_v<T, char> ? SUBLET_INT8 : SUBLET_UINT8;
    return static_cast<sublet_checkpoint_type>(first + 2 * log2_size);
  }
}

namespace checkpoint_detail {

// Numbers that lie one after the other: how many, and of which type. Other types have none.
template <class T>
struct Numbers {
  static constexpr std::size_t count =
      std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && !std::is_const_v<T> ? 1 : 0;
  using Type = T;
};
template <class T, std::size_t N>
struct Numbers<T[N]> {
  static constexpr std::size_t count = N * Numbers<T>::count;
  using Type = typename Numbers<T>::Type;
};
template <class T, std::size_t N>
struct Numbers<std::array<T, N>> : Numbers<T[N]> {};
template <class T>
struct Numbers<std::array<T, 0>> {
  static constexpr std::size_t count = 0;
  using Type = T;
};

template <class T>
constexpr bool is_numbers = Numbers<T>::count != 0;

template <class T>
struct IsArray : std::is_array<T> {};
template <class T, std::size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};

template <class T>
struct IsResizable : std::false_type {};
template <class T, class A>
struct IsResizable<std::vector<T, A>> : std::true_type {};
template <class T, class A>
struct IsResizable<std::basic_string<T, std::char_traits<T>, A>> : std::true_type {};

// A vector or string as the C library sees it: where it is, and making room in it.
template <class V>
struct Resizable {
  using Element = typename V::value_type;
  using Type = typename Numbers<Element>::Type;
  static constexpr std::size_t count = Numbers<Element>::count;

  static void* place(std::size_t* numbers, void* values) {
    V& all = *static_cast<V*>(values);
    *numbers = all.size() * count;
    return all.data();
  }
  static void* room(std::size_t numbers, void* values) {
    V& all = *static_cast<V*>(values);
    if (numbers % count != 0) return nullptr;
    try {
      all.resize(numbers / count);
    } catch (...) {
      return nullptr;
    }
    return all.data();
  }
};

template <class V>
constexpr bool is_resizable_numbers() {
  if constexpr (IsResizable<V>::value) {
    return is_numbers<typename V::value_type>;
  } else {
    return false;
  }
}

}  // namespace checkpoint_detail

// A section being written or read; valid only during the callback.
class CheckpointStream {
 public:
  explicit CheckpointStream(sublet_checkpoint_stream* stream) : stream_(stream) {}

  template <class T>
  void write(const T* elements, std::size_t count) {
    check(sublet_checkpoint_write(stream_, elements, count, checkpoint_type<T>()));
  }
  // One value of any kind that can be saved.
  template <class T>
  void write(const T& value) {
    using namespace checkpoint_detail;
    if constexpr (is_numbers<T>) {
      using Number = typename Numbers<T>::Type;
      write(reinterpret_cast<const Number*>(&value), Numbers<T>::count);
    } else if constexpr (std::is_same_v<T, bool>) {
      write(static_cast<std::uint8_t>(value));
    } else if constexpr (is_resizable_numbers<T>()) {
      using Number = typename Resizable<T>::Type;
      write(static_cast<std::uint64_t>(value.size()));
      write(reinterpret_cast<const Number*>(value.data()), value.size() * Resizable<T>::count);
    } else if constexpr (IsResizable<T>::value || IsArray<T>::value) {
      if constexpr (IsResizable<T>::value) write(static_cast<std::uint64_t>(value.size()));
      for (const auto& element : value) write(element);
    } else {
      // Only read here; the fields are named for reading and writing.
      std::apply([this](const auto&... fields) { (write(fields), ...); },
                 checkpoint_fields(const_cast<T&>(value)));
    }
  }
  template <class T>
  void read(T* elements, std::size_t count) {
    check(sublet_checkpoint_read(stream_, elements, count, checkpoint_type<T>()));
  }
  template <class T>
  T read() {
    T value{};
    read_into(value);
    return value;
  }
  // Reads what write() wrote of the same type.
  template <class T>
  void read_into(T& value) {
    using namespace checkpoint_detail;
    if constexpr (is_numbers<T>) {
      read(reinterpret_cast<typename Numbers<T>::Type*>(&value), Numbers<T>::count);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = read<std::uint8_t>() != 0;
    } else if constexpr (is_resizable_numbers<T>()) {
      using Number = typename Resizable<T>::Type;
      value.resize(read_size(sizeof(Number) * Resizable<T>::count));
      read(reinterpret_cast<Number*>(value.data()), value.size() * Resizable<T>::count);
    } else if constexpr (IsResizable<T>::value) {
      // One by one: each must be in the file before memory is spent on the next.
      value.clear();
      for (std::size_t left = read_size(1); left > 0; --left) {
        value.emplace_back();
        read_into(value.back());
      }
    } else if constexpr (IsArray<T>::value) {
      for (auto& element : value) read_into(element);
    } else {
      std::apply([this](auto&... fields) { (read_into(fields), ...); }, checkpoint_fields(value));
    }
  }
  // Bytes not yet read: an upper bound for every length found in the stream.
  std::uint64_t remaining() const { return sublet_checkpoint_remaining(stream_); }

 private:
  // A number of elements, each of at least `bytes`, that fit in what is left of the section.
  std::size_t read_size(std::size_t bytes) {
    const auto size = read<std::uint64_t>();
    if (size > remaining() / bytes) check(EBADMSG);
    return static_cast<std::size_t>(size);
  }
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

  // During its lifetime points do nothing: the variables are not consistent.
  class Critical {
   public:
    explicit Critical(Checkpoint& checkpoint) : handle_(checkpoint.handle_) {
      sublet_checkpoint_begin(handle_);
    }
    ~Critical() { sublet_checkpoint_end(handle_); }
    Critical(const Critical&) = delete;
    Critical& operator=(const Critical&) = delete;

   private:
    sublet_checkpoint* handle_;
  };

  template <class T>
  void variable(const char* name, T* elements, std::size_t count) {
    check(sublet_checkpoint_variable(handle_, name, elements, count, checkpoint_type<T>()));
  }
  // Of any kind that can be saved, see above. Numbers, and arrays, vectors and strings of them,
  // have their type in the file; anything else is a section of bytes.
  template <class T>
  void variable(const char* name, T& value) {
    using namespace checkpoint_detail;
    if constexpr (is_numbers<T>) {
      variable(name, reinterpret_cast<typename Numbers<T>::Type*>(&value), Numbers<T>::count);
    } else if constexpr (is_resizable_numbers<T>()) {
      using Values = Resizable<T>;
      check(sublet_checkpoint_array(handle_, name, checkpoint_type<typename Values::Type>(),
                                    &Values::place, &Values::room, &value));
    } else {
      callbacks(
          name, [&value](CheckpointStream& out) { out.write(value); },
          [&value](CheckpointStream& in) { in.read_into(value); });
    }
  }

  // An exception from `save` makes the save fail; one from `restore`, the start.
  void callbacks(const char* name, Callback save, Callback restore) {
    sections_.push_back({std::move(save), std::move(restore)});
    check(sublet_checkpoint_callbacks(handle_, name, &call_save, &call_restore, &sections_.back()));
  }

  // Migration from older layouts: sublet_checkpoint_oldest and the next ones in
  // sublet_checkpoint.h.
  void oldest(std::uint32_t layout) { check(sublet_checkpoint_oldest(handle_, layout)); }
  void since(const char* name, std::uint32_t layout) {
    check(sublet_checkpoint_since(handle_, name, layout));
  }
  void until(const char* name, std::uint32_t layout) {
    check(sublet_checkpoint_until(handle_, name, layout));
  }
  std::uint32_t resumed_layout() const { return sublet_checkpoint_resumed_layout(handle_); }

  // True if resumed.
  bool start(const sublet_checkpoint_options& options = {}) {
    const int result = sublet_checkpoint_start(handle_, &options);
    if (result == SUBLET_REFUSED) throw CheckpointRefused(sublet_checkpoint_message(handle_));
    return result == SUBLET_RESUMED;
  }
  // False: leave now (only with leave_by_returning).
  bool point() { return sublet_checkpoint_point(handle_) == SUBLET_GO_ON; }
  // Points of `count` threads: sublet_checkpoint_threads in sublet_checkpoint.h.
  void threads(unsigned count) { check(sublet_checkpoint_threads(handle_, count)); }
  bool thread_point() { return sublet_checkpoint_thread_point(handle_) == SUBLET_GO_ON; }
  void thread_done() { sublet_checkpoint_thread_done(handle_); }
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
  // A line for `sublet show`.
  void say(const std::string& text) { sublet_checkpoint_say(handle_, text.c_str()); }
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
