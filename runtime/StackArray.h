// Some elements, on the stack where they are few.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace wg::runtime {

/// `size` elements, pointers without a value: up to N on the stack, more on the heap. Where there is no memory it
/// throws std::bad_alloc; LLVM's vectors end the process.
template <class T, size_t N> class StackArray {
public:
  explicit StackArray(size_t size)
      : data_(size <= N ? reinterpret_cast<T *>(local_) : static_cast<T *>(::operator new(size * sizeof(T)))),
        size_(size) {
    static_assert(std::is_nothrow_default_constructible_v<T>);
    if constexpr (!std::is_pointer_v<T>)
      std::uninitialized_value_construct_n(data_, size);
  }
  StackArray(const StackArray &) = delete;
  ~StackArray() {
    std::destroy_n(data_, size_);
    if (size_ > N)
      ::operator delete(data_);
  }
  size_t size() const { return size_; }
  T &operator[](size_t i) { return data_[i]; }
  T *begin() { return data_; }
  T *end() { return data_ + size_; }
  operator std::span<T>() { return {data_, size_}; }
  operator std::span<const T>() const { return {data_, size_}; }

private:
  alignas(T) std::byte local_[N * sizeof(T)];
  T *data_;
  size_t size_;
};

} // namespace wg::runtime
