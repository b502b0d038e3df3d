// Attributes of an instruction that name computations: calls=%c, condition=%c, body=%b; or write
// them out: to_apply={ x = f32[] parameter(0) … }.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/hlo/computation_table.h"
#include "model/hlo/cursor.h"
#include "model/program/program.h"

namespace spillway::hlo {

/// Collects what one instruction after the other calls. Mistakes are the cursor's.
class CallReader {
 public:
  /// Reads the computation at the cursor, instructions in braces, which shall have that name.
  using ReadInner = std::function<ComputationId(std::string_view name)>;

  CallReader(Cursor& cursor, ComputationTable& computations, ReadInner read_inner)
      : cursor_(cursor), computations_(computations), read_inner_(std::move(read_inner)) {}

  /// Begins with the instruction of that name.
  void start(std::string_view name) { roles_ = {.caller = name}; }
  /// Looks at one of its attributes; what it calls is put behind `called`.
  void note(std::string_view name, std::string_view value, std::vector<ComputationId>& called);
  /// Puts the rest behind `called`: {condition, body}, {true, false}, whatever the text's order.
  void finish(const Instruction& instruction, std::vector<ComputationId>& called);

  /// The number that index= had, for get-tuple-element.
  std::optional<std::int64_t> index() const { return roles_.index; }

 private:
  ComputationId read_one(std::string_view value);
  void read_list(std::string_view value, std::vector<ComputationId>& called);
  bool holds_instructions();
  ComputationId read_inner();

  struct Roles {
    std::string_view caller;
    std::optional<ComputationId> condition{}, body{}, if_true{}, if_false{};
    std::optional<std::int64_t> index{};
  };

  Cursor& cursor_;
  ComputationTable& computations_;
  ReadInner read_inner_;
  Roles roles_;
};

}  // namespace spillway::hlo
