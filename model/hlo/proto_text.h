// A HloModuleProto as the HLO text that XLA would have printed of it.
#pragma once

#include <cstddef>
#include <string>

namespace spillway::pb {
class HloModule;
}  // namespace spillway::pb

namespace spillway::hlo {

struct ProtoText {
  std::string text;
  bool is_scheduled = false;
  std::string problem;  ///< why there is no text; empty when there is
};

/// Follows ids to what they name, and puts instructions in the order of their schedule. Ids that
/// lead nowhere, operands behind their users, and schedules that do not fit are problems.
/// `bytes` is the size of the proto: a text very much longer is a problem, too.
ProtoText to_text(const pb::HloModule& module, std::size_t bytes);

}  // namespace spillway::hlo
