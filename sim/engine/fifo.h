// A first-in, first-out queue in one block of memory that it keeps.
#pragma once

#include <cstddef>
#include <vector>

namespace spillway::engine {

template <typename T>
class Fifo {
 public:
  bool empty() const { return first_ == items_.size(); }
  void push(const T& item) { items_.push_back(item); }

  T pop() {
    const T item = items_[first_++];
    if (empty()) {
      items_.clear();
      first_ = 0;
    } else if (first_ >= kSlack &&
               first_ * 2 >= items_.size()) {  // never empty: drop the used half
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return item;
  }

  std::size_t size() const { return items_.size() - first_; }
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() const { return items_.end(); }

 private:
  static constexpr std::size_t kSlack = 64;
  std::vector<T> items_;
  std::size_t first_ = 0;
};

}  // namespace spillway::engine
