// Groups of devices that a collective of a HloProto runs in, written as HLO text has them.
#pragma once

#include <string>

namespace spillway::pb {
class HloInstruction;
}  // namespace spillway::pb

namespace spillway::hlo {

/// ", replica_groups=…" in the form that the proto has: listed, counted or along a mesh. XLA leaves
/// older fields filled beside newer ones; the newest counts. Nothing for what is no collective.
void append_replica_groups(std::string& text, const pb::HloInstruction& instruction);

}  // namespace spillway::hlo
