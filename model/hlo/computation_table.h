// The computations of a module by name: called, defined, or both.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "model/hlo/text_table.h"
#include "model/program/program.h"

namespace spillway::hlo {

class ComputationTable {
 public:
  /// The id of the computation that an instruction calls; `name` is where the text says so.
  ComputationId mention(std::string_view name) {
    bool is_new = false;
    const ComputationId id = named(name, is_new);
    called_first_ |= is_new;
    return id;
  }

  /// Gives a computation to its name. Empty when the name has one already.
  std::optional<ComputationId> define(std::string_view name,
                                      std::shared_ptr<const Computation> computation) {
    bool is_new = false;
    const ComputationId id = named(name, is_new);
    if (computations_[id] != nullptr) return std::nullopt;
    computations_[id] = std::move(computation);
    return id;
  }

  /// Adds a computation that the text does not write out.
  ComputationId add(std::shared_ptr<const Computation> computation) {
    mentions_.push_back(computation->name());
    return computations_.push(std::move(computation));
  }

  /// The first mention of a computation that has no definition.
  std::optional<std::string_view> first_undefined() const {
    for (const ComputationId id : ids(computations_))
      if (computations_[id] == nullptr) return mentions_[id.index];
    return std::nullopt;
  }

  /// Whether something was called before it was defined. Where nothing was, no circle of calls is
  /// possible.
  bool called_first() const { return called_first_; }

  std::string_view mention_of(ComputationId id) const { return mentions_[id.index]; }
  IdVector<ComputationId, std::shared_ptr<const Computation>> take() {
    return std::move(computations_);
  }

 private:
  ComputationId named(std::string_view name, bool& is_new) {
    ComputationId& id = by_name_.insert(name, is_new);
    if (is_new) {
      id = computations_.push(nullptr);
      mentions_.push_back(name);
    }
    return id;
  }

  TextTable<ComputationId> by_name_;
  std::vector<std::string_view> mentions_;  ///< by id: where the text first names it
  IdVector<ComputationId, std::shared_ptr<const Computation>> computations_;
  bool called_first_ = false;
};

}  // namespace spillway::hlo
