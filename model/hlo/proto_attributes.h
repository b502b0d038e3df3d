// Attributes of an instruction of a HloProto, written as HLO text has them.
#pragma once

#include <string>

namespace spillway::pb {
class HloInstruction;
}  // namespace spillway::pb

namespace spillway::hlo {

/// ", dimensions={0}, kind=kLoop, metadata={…}": every attribute that stands in the instruction
/// itself. Those that name other things (calls, control predecessors) or texts of the module
/// (backend_config) are the caller's.
void append_attributes(std::string& text, const pb::HloInstruction& instruction);

}  // namespace spillway::hlo
