// Typed indices, and the vectors they index. An id of one kind does not open a vector of another.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "model/base/check.h"

namespace spillway {

/// An index that belongs to one kind of object. `Tag` is an empty struct that names the kind.
template <typename Tag>
struct Id {
  std::uint32_t index = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// A vector that only its own id opens. Bounds are checked, in release builds too.
template <typename IdType, typename T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size, T value = T()) : items_(size, std::move(value)) {}

  T& operator[](IdType id) {
    check(id.index < items_.size(), "an id is outside its vector");
    return items_[id.index];
  }
  const T& operator[](IdType id) const {
    check(id.index < items_.size(), "an id is outside its vector");
    return items_[id.index];
  }

  /// Appends and returns the id of the new item.
  IdType push(T value) {
    items_.push_back(std::move(value));
    return IdType(items_.size() - 1);
  }

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void reserve(std::size_t n) { items_.reserve(n); }
  void resize(std::size_t n) { items_.resize(n); }
  bool contains(IdType id) const { return id.index < items_.size(); }

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

/// The ids 0, 1, … n-1, for range-for.
template <typename IdType>
class IdRange {
 public:
  explicit IdRange(std::size_t size) : size_(size) {}
  class Iterator {
   public:
    explicit Iterator(std::size_t i) : i_(i) {}
    IdType operator*() const { return IdType(i_); }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    std::size_t i_;
  };
  Iterator begin() const { return Iterator(0); }
  Iterator end() const { return Iterator(size_); }

 private:
  std::size_t size_;
};

/// Every id of a vector, in order.
template <typename IdType, typename T>
IdRange<IdType> ids(const IdVector<IdType, T>& items) {
  return IdRange<IdType>(items.size());
}

}  // namespace spillway

template <typename Tag>
struct std::hash<spillway::Id<Tag>> {
  std::size_t operator()(spillway::Id<Tag> id) const noexcept { return id.index; }
};
