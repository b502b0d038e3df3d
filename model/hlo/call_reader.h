// Attributes of an instruction that name computations: calls=%c, condition=%c, body=%b.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/hlo/computation_table.h"
#include "model/hlo/cursor.h"
#include "model/program/program.h"

namespace spillway::hlo {

/// Collects what one instruction after the other calls. Mistakes are the cursor's.
class CallReader {
 public:
  CallReader(Cursor& cursor, ComputationTable& computations)
      : cursor_(cursor), computations_(computations) {}

  /// Begins with an instruction.
  void start() { roles_ = {}; }
  /// Looks at one of its attributes; what it calls is put behind `called`.
  void note(std::string_view name, std::string_view value, std::vector<ComputationId>& called);
  /// Puts the rest behind `called`: {condition, body}, {true, false}, whatever the text's order.
  void finish(const Instruction& instruction, std::vector<ComputationId>& called);

  /// The number that index= had, for get-tuple-element.
  std::optional<std::int64_t> index() const { return roles_.index; }

 private:
  ComputationId read_one(std::string_view value);
  void read_list(std::string_view value, std::vector<ComputationId>& called);

  struct Roles {
    std::optional<ComputationId> condition, body, if_true, if_false;
    std::optional<std::int64_t> index;
  };

  Cursor& cursor_;
  ComputationTable& computations_;
  Roles roles_;
};

}  // namespace spillway::hlo
